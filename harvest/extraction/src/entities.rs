//! Character references in the values of attributes and in the text of XML: `&amp;`, `&#38;`, `&eacute;`.

use std::borrow::Cow;

use encoding_rs::WINDOWS_1252;
use quick_xml::escape::resolve_html5_entity;

/// The longest name of a reference (HTML Standard, "Named character references").
const MAX_NAME: usize = 32;

/// The names that are references without a semicolon, too (HTML Standard, "Named character references").
const BARE: [&str; 106] = [
    "AElig", "AMP", "Aacute", "Acirc", "Agrave", "Aring", "Atilde", "Auml", "COPY", "Ccedil",
    "ETH", "Eacute", "Ecirc", "Egrave", "Euml", "GT", "Iacute", "Icirc", "Igrave", "Iuml", "LT",
    "Ntilde", "Oacute", "Ocirc", "Ograve", "Oslash", "Otilde", "Ouml", "QUOT", "REG", "THORN",
    "Uacute", "Ucirc", "Ugrave", "Uuml", "Yacute", "aacute", "acirc", "acute", "aelig", "agrave",
    "amp", "aring", "atilde", "auml", "brvbar", "ccedil", "cedil", "cent", "copy", "curren", "deg",
    "divide", "eacute", "ecirc", "egrave", "eth", "euml", "frac12", "frac14", "frac34", "gt",
    "iacute", "icirc", "iexcl", "igrave", "iquest", "iuml", "laquo", "lt", "macr", "micro",
    "middot", "nbsp", "not", "ntilde", "oacute", "ocirc", "ograve", "ordf", "ordm", "oslash",
    "otilde", "ouml", "para", "plusmn", "pound", "quot", "raquo", "reg", "sect", "shy", "sup1",
    "sup2", "sup3", "szlig", "thorn", "times", "uacute", "ucirc", "ugrave", "uml", "uuml",
    "yacute", "yen", "yuml",
];

/// Returns the value with its references replaced, as they are read in attributes: one without a semicolon is left
/// where a letter, a digit or `=` follows, so that `?a=1&copy=2` stays what it is.
pub(crate) fn decode_entities(value: &str) -> Cow<'_, str> {
    let Some(first) = value.find('&') else {
        return Cow::Borrowed(value);
    };
    let (before, mut rest) = value.split_at(first);
    let mut decoded = before.to_owned();
    while let Some(behind) = rest.strip_prefix('&') {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '#';
        let end = behind.find(|c| !is_name(c)).unwrap_or(behind.len());
        let (name, next) = behind.split_at(end);
        let (ended, is_ended) = match next.strip_prefix(';') {
            Some(ended) => (ended, true),
            None => (next, false),
        };
        let is_read =
            is_ended || name.starts_with('#') || (BARE.contains(&name) && !next.starts_with('='));
        let text = if is_read { resolve_entity(name) } else { None };
        let next = if let Some(text) = text {
            decoded.push_str(&text);
            ended
        } else {
            decoded.push('&');
            behind
        };
        let (plain, further) = next.split_at(next.find('&').unwrap_or(next.len()));
        decoded.push_str(plain);
        rest = further;
    }
    Cow::Owned(decoded)
}

/// Returns the characters of a reference, which is named without `&` and `;`.
pub(crate) fn resolve_entity(name: &str) -> Option<Cow<'static, str>> {
    let Some(number) = name.strip_prefix('#') else {
        return (name.len() <= MAX_NAME)
            .then(|| resolve_html5_entity(name).map(Cow::Borrowed))
            .flatten();
    };
    let number = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    }
    .ok()?;
    // Pages write numbers of Windows-1252 where they mean its characters.
    match u8::try_from(number) {
        Ok(byte @ 0x80..=0x9f) => {
            let character = [byte];
            let text = WINDOWS_1252.decode_without_bom_handling(&character).0;
            Some(Cow::Owned(text.into_owned()))
        }
        Ok(0) => None,
        _ => char::from_u32(number).map(|c| Cow::Owned(c.to_string())),
    }
}
