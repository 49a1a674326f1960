//! Character references in the values of attributes.
//!
//! Knows numbers, the characters of Latin-1 and those of URLs; other names stay as they are.

use std::borrow::Cow;

/// The names of U+00A0 to U+00FF, in their order.
const LATIN_1: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf",
    "laquo", "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro",
    "para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest",
    "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave", "Eacute",
    "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute",
    "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute",
    "THORN", "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil",
    "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde",
    "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash", "ugrave", "uacute", "ucirc",
    "uuml", "yacute", "thorn", "yuml",
];

const OTHERS: [(&str, char); 26] = [
    ("amp", '&'),
    ("AMP", '&'),
    ("lt", '<'),
    ("LT", '<'),
    ("gt", '>'),
    ("GT", '>'),
    ("quot", '"'),
    ("QUOT", '"'),
    ("apos", '\''),
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("colon", ':'),
    ("sol", '/'),
    ("bsol", '\\'),
    ("period", '.'),
    ("comma", ','),
    ("semi", ';'),
    ("num", '#'),
    ("quest", '?'),
    ("equals", '='),
    ("percnt", '%'),
    ("plus", '+'),
    ("commat", '@'),
    ("lpar", '('),
    ("rpar", ')'),
    ("lowbar", '_'),
];

/// The longest name that is looked up, and a bit more.
const LONGEST_NAME: usize = 12;

/// Returns the value that an attribute has, from the bytes that stand for it.
pub(super) fn decode_entities(raw: &str) -> Cow<'_, str> {
    if memchr::memchr(b'&', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut value = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, behind)) = rest.split_once('&') {
        value.push_str(before);
        if let Some((c, behind)) = reference(behind) {
            value.push(c);
            rest = behind;
        } else {
            value.push('&');
            rest = behind;
        }
    }
    value.push_str(rest);
    Cow::Owned(value)
}

/// Returns the value as it stands in an attribute. The one who writes the attribute escapes its quotes.
pub(super) fn encode_entities(value: &str) -> String {
    value.replace('&', "&amp;")
}

/// Returns the character of a reference, and what follows it; `None` if there is no reference.
fn reference(text: &str) -> Option<(char, &str)> {
    if let Some(number) = text.strip_prefix('#') {
        return numeric(number);
    }
    let end = text
        .bytes()
        .take(LONGEST_NAME)
        .take_while(u8::is_ascii_alphanumeric)
        .count();
    let (name, behind) = text.split_at(end);
    if let Some(behind) = behind.strip_prefix(';') {
        named_character(name).map(|c| (c, behind))
    } else {
        // Old pages leave the semicolon out; in a query `&copy=1` is no reference.
        let is_query = behind.starts_with('=');
        let is_old = LATIN_1.contains(&name) || matches!(name, "amp" | "lt" | "gt" | "quot");
        let character = named_character(name).filter(|_| is_old && !is_query);
        character.map(|c| (c, behind))
    }
}

fn named_character(name: &str) -> Option<char> {
    let latin = LATIN_1.iter().position(|known| *known == name);
    let latin = latin.and_then(|at| char::from_u32(0xa0 + u32::try_from(at).ok()?));
    latin.or_else(|| {
        let (_, c) = OTHERS.iter().find(|(known, _)| *known == name)?;
        Some(*c)
    })
}

fn numeric(text: &str) -> Option<(char, &str)> {
    let (radix, digits) = match text.strip_prefix(['x', 'X']) {
        Some(digits) => (16, digits),
        None => (10, text),
    };
    let end = digits
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(digits.len());
    let (number, behind) = digits.split_at(end);
    if number.is_empty() {
        return None;
    }
    let code = u32::from_str_radix(number, radix).unwrap_or(u32::MAX);
    let c = char::from_u32(code).filter(|c| *c != '\0');
    let behind = behind.strip_prefix(';').unwrap_or(behind);
    Some((c.unwrap_or(char::REPLACEMENT_CHARACTER), behind))
}
