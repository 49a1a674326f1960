//! Fields of archived heads: which mean something in an answer, and what may stand in one.

/// The use of an archived field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldUse {
    /// The field says what the bytes are, and is passed on; the first of several.
    Representation,
    /// The field says how the bytes are encoded, and is passed on while they are.
    Coding,
    /// The field means nothing here: connections, caches, cookies, policies, redirects and dates were about another
    /// server.
    Reported,
}

const REPRESENTATION: [&str; 3] = ["content-type", "content-language", "content-disposition"];

/// Returns the use of the field of a name.
pub(super) fn use_of(name: &[u8]) -> FieldUse {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if REPRESENTATION.iter().any(|known| is(known)) {
        FieldUse::Representation
    } else if is("content-encoding") {
        FieldUse::Coding
    } else {
        FieldUse::Reported
    }
}

/// Returns whether bytes are a token (RFC 9110): the name of a field.
pub(super) fn is_token(name: &[u8]) -> bool {
    (1..=128).contains(&name.len())
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// Returns a value in one line: control characters become blanks, and none stand around it. Bytes beyond ASCII are
/// kept, as HTTP allows.
pub(super) fn value_of(value: &[u8]) -> Vec<u8> {
    let clean = |byte: &u8| match byte {
        0..0x20 | 0x7f => b' ',
        other => *other,
    };
    let line: Vec<u8> = value.iter().map(clean).collect();
    line.trim_ascii().to_vec()
}
