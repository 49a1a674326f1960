//! The filters of a request, in the notation of each dialect.
//!
//! | Dialect | Notation | Means |
//! |---|---|---|
//! | pywb | `[!]field:text` | the field has the text in it |
//! | pywb | `[!]=field:text` | the field is the text |
//! | pywb | `[!]~field:expression` | the expression matches at the beginning of the field |
//! | Wayback | `[!]field:expression` | the expression matches all of the field; without a field, all of the line |
//! | OutbackCDX | `[!]field:expression` | the expression matches all of the field |
//! | OutbackCDX | `~[!]field:text` | the field has the text in it |
//!
//! Wayback and OutbackCDX also take pywb's `=`, which means nothing to them. A field may be a name of either spelling,
//! the letter of a CDX legend, or for Wayback its number in the line.

use archive_formats::cdx::query::{Anchoring, CaptureField, Filter, FilterTest, Pattern};

use super::request_error::excerpt;
use super::{CdxRequestError, Dialect};

/// The notation of the text of a filter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notation {
    Contains,
    Exact,
    Matches(Anchoring),
}

/// Reads a filter as a client of a dialect writes it.
pub(super) fn read_filter(dialect: Dialect, text: &str) -> Result<Filter, CdxRequestError> {
    let (negate, notation, rest) = prefix(dialect, text);
    let malformed = || CdxRequestError::FilterForm(excerpt(text));
    let (field, expression) = match rest.split_once(':') {
        Some((name, expression)) => match (field(dialect, name), dialect) {
            (Some(field), _) => (field, expression),
            (None, _) if name.is_empty() => return Err(malformed()),
            // An expression for the whole line may have a colon, but is not one word before it.
            (None, Dialect::Wayback) if !is_word(name) => (CaptureField::Line, rest),
            (None, _) => return Err(CdxRequestError::wrong_field("filter", name)),
        },
        None if dialect == Dialect::Wayback && !rest.is_empty() => (CaptureField::Line, rest),
        None => return Err(malformed()),
    };
    let condition = match notation {
        Notation::Contains => FilterTest::Contains(expression.to_owned()),
        Notation::Exact => FilterTest::Exact(expression.to_owned()),
        Notation::Matches(anchoring) => {
            let pattern = Pattern::new(expression, anchoring);
            FilterTest::Matches(pattern.map_err(|why| CdxRequestError::Pattern {
                field: excerpt(rest.split(':').next().unwrap_or_default()),
                why,
            })?)
        }
    };
    Ok(Filter {
        field,
        negate,
        test: condition,
    })
}

/// Returns the signs before a field: whether the filter is negated, and how its text is meant.
fn prefix(dialect: Dialect, text: &str) -> (bool, Notation, &str) {
    let (negate, rest) = match text.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if let Some(rest) = rest.strip_prefix('=') {
        return (negate, Notation::Exact, rest);
    }
    match (dialect, rest.strip_prefix('~')) {
        (Dialect::Pywb, Some(rest)) => (negate, Notation::Matches(Anchoring::Start), rest),
        (Dialect::Pywb, None) => (negate, Notation::Contains, rest),
        (Dialect::OutbackCdx, Some(rest)) => match rest.strip_prefix('!') {
            Some(rest) => (true, Notation::Contains, rest),
            None => (negate, Notation::Contains, rest),
        },
        (Dialect::Wayback, _) | (Dialect::OutbackCdx, None) => {
            (negate, Notation::Matches(Anchoring::Whole), rest)
        }
    }
}

fn field(dialect: Dialect, name: &str) -> Option<CaptureField> {
    let by_name = CaptureField::of_name(name);
    by_name.or_else(|| match dialect {
        // Lines of CDXJ may have any field.
        Dialect::Pywb if is_word(name) => Some(CaptureField::Extra(name.to_owned())),
        Dialect::Wayback => {
            let at: usize = name.parse().ok()?;
            CaptureField::cdx11().get(at).cloned()
        }
        Dialect::Pywb | Dialect::OutbackCdx => None,
    })
}

fn is_word(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && name.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use archive_formats::cdx::Format;

    use super::*;

    const LINE: &str = "com,example)/ 20140216050221 http://example.com/ text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - - 1656 151 a.warc.gz";

    fn check(dialect: Dialect, filter: &str, expected: bool) {
        let capture = Format::cdx11().read_line(LINE).unwrap();
        let filter = read_filter(dialect, filter).unwrap();
        assert_eq!(filter.accepts(&capture), expected, "{dialect:?} {filter:?}");
    }

    /// Fails if a sign of pywb's filters means something else.
    #[test]
    fn pywb_filters_contain_equal_or_match() {
        for (filter, expected) in [
            ("mime:html", true),
            ("mimetype:text", true),
            ("=mime:html", false),
            ("=mime:text/html", true),
            ("!=status:200", false),
            ("!mime:html", false),
            ("~mime:.*/html$", true),
            ("~mime:text", true),
            ("~mime:html", false),
            ("!~mime:html", true),
            ("redirect:-", true),
            ("languages:dan", false),
            ("!languages:dan", true),
        ] {
            check(Dialect::Pywb, filter, expected);
        }
    }

    /// Fails if an expression of the Wayback server matches less or more than all of a field.
    #[test]
    fn wayback_filters_match_whole_fields() {
        for (filter, expected) in [
            ("statuscode:200", true),
            ("statuscode:20", false),
            ("s:2..", true),
            ("!statuscode:200", false),
            ("mimetype:text/.*", true),
            ("mime:html", false),
            ("digest:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", true),
            ("4:200", true),
            ("original:http://example.com/", true),
            (".* 200 .*", true),
            ("!.* 404 .*", true),
            (".*http://example.com/.*", true),
        ] {
            check(Dialect::Wayback, filter, expected);
        }
    }

    /// Fails if `~` is no substring for OutbackCDX, or stands on the wrong side of `!`.
    #[test]
    fn outbackcdx_filters_match_or_contain() {
        for (filter, expected) in [
            ("status:200", true),
            ("!status:[45]..", true),
            ("mime:html", false),
            ("~mime:html", true),
            ("~!mime:html", false),
            ("=mimetype:text/html", true),
        ] {
            check(Dialect::OutbackCdx, filter, expected);
        }
    }

    /// Fails if a filter that cannot be meant is taken for one that lets everything through.
    #[test]
    fn unreadable_filters_are_refused() {
        let all = [Dialect::Pywb, Dialect::Wayback, Dialect::OutbackCdx];
        for dialect in all {
            assert!(read_filter(dialect, "").is_err(), "{dialect:?}");
            assert!(read_filter(dialect, ":200").is_err(), "{dialect:?}");
        }
        for (dialect, filter) in [
            (Dialect::Pywb, "~url:("),
            (Dialect::Pywb, "~url:(?!a)b"),
            (Dialect::Pywb, "~url:(a{1000}){1000}"),
            (Dialect::Pywb, "200"),
            (Dialect::Wayback, "colour:red"),
            (Dialect::Wayback, "statuscode:*"),
            (Dialect::Wayback, "11:x"),
            (Dialect::OutbackCdx, "colour:red"),
            (Dialect::OutbackCdx, "200"),
        ] {
            assert!(
                read_filter(dialect, filter).is_err(),
                "{dialect:?} {filter}"
            );
        }
    }
}
