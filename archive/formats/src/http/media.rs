//! Media types as servers write them.

/// A media type such as `text/html; charset=UTF-8`, in small letters where case has no meaning.
///
/// ```
/// use archive_formats::http::MediaType;
///
/// let media = MediaType::read_media(b"Text/HTML; charset=\"utf-8\"").unwrap();
/// assert_eq!((media.essence.as_str(), media.charset.as_deref()), ("text/html", Some("utf-8")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaType {
    /// The type without parameters, in small letters: `text/html`.
    pub essence: String,
    /// The charset, without quotes, as the server wrote it.
    pub charset: Option<String>,
}

impl MediaType {
    /// Reads the value of a `Content-Type`; `None` if it has no word before the first `;`, `,` or blank.
    ///
    /// A type without a slash is kept: indexes have always named what the server sent.
    pub fn read_media(value: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(value);
        let text = text.trim();
        let end = text
            .find(|c: char| c == ';' || c == ',' || c.is_whitespace())
            .unwrap_or(text.len());
        let essence = text.get(..end)?.trim_matches(|c| c == '"' || c == '\'');
        if essence.is_empty() {
            return None;
        }
        let charset = parameters(text.get(end..)?)
            .find(|(name, _)| name.eq_ignore_ascii_case("charset"))
            .map(|(_, value)| value);
        Some(Self {
            essence: essence.to_ascii_lowercase(),
            charset,
        })
    }

    /// Returns the value of a parameter, such as the boundary of multipart.
    pub fn read_parameter(value: &[u8], wanted: &str) -> Option<String> {
        let text = String::from_utf8_lossy(value);
        let end = text.find(';')?;
        parameters(text.get(end..)?)
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value)
    }
}

/// Returns the parameters `; name=value` and `; name="value"`, as far as the text has their form; empty values are left
/// out.
fn parameters(text: &str) -> impl Iterator<Item = (&str, String)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| c == ';' || c == ',' || c.is_whitespace());
            if rest.is_empty() {
                return None;
            }
            let end = rest.find(['=', ';', ',']).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            let Some(behind) = behind.strip_prefix('=') else {
                rest = behind;
                continue;
            };
            let behind = behind.trim_start();
            let value = if let Some(quoted) = behind.strip_prefix('"') {
                let (value, used) = unquote(quoted);
                rest = quoted.get(used..).unwrap_or_default();
                value
            } else {
                let end = behind.find([';', ',']).unwrap_or(behind.len());
                rest = behind.get(end..).unwrap_or_default();
                behind
                    .get(..end)
                    .unwrap_or_default()
                    .trim()
                    .trim_matches('\'')
                    .to_owned()
            };
            if !value.is_empty() {
                return Some((name.trim(), value));
            }
        }
    })
}

/// Returns the text before the closing quote, and the number of bytes up to and with the quote.
fn unquote(text: &str) -> (String, usize) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, at + 1),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            other => value.push(other),
        }
    }
    (value, text.len())
}
