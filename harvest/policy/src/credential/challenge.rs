//! Challenges as hosts write them (RFC 9110 §11.6.1): several in one field, with commas between them and within them.
//!
//! Owns what is taken: schemes and algorithms that are not known are left out, and so are demands that cannot be
//! answered. Reads the first [`MAX_BYTES`] of a field, in one pass.

use super::{Challenge, DigestAlgorithm, DigestChallenge, DigestHash};

/// The most bytes of a field that are read.
const MAX_BYTES: usize = 16 << 10;

/// A scheme with its parameters: names in lower case, values without quotation marks.
struct AuthScheme {
    name: String,
    parameters: Vec<(String, String)>,
}

/// Reads the value of a field `WWW-Authenticate`, in the order of the host.
pub fn parse_challenges(field: &str) -> Vec<Challenge> {
    let field = field
        .get(..field.floor_char_boundary(MAX_BYTES))
        .unwrap_or(field);
    schemes(field).iter().filter_map(challenge).collect()
}

fn schemes(field: &str) -> Vec<AuthScheme> {
    let mut schemes: Vec<AuthScheme> = Vec::new();
    let mut rest = field;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '='));
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | '=' | '"'));
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        if word.is_empty() {
            // A quoted string without a name, or the end.
            let Some(behind) = rest.strip_prefix('"') else {
                return schemes;
            };
            rest = unquote(behind).1;
            continue;
        }
        rest = behind;
        let Some(behind) = behind.trim_start().strip_prefix('=') else {
            schemes.push(AuthScheme {
                name: word.to_ascii_lowercase(),
                parameters: Vec::new(),
            });
            continue;
        };
        let behind = behind.trim_start();
        let (value, behind) = if let Some(behind) = behind.strip_prefix('"') {
            unquote(behind)
        } else {
            let end = behind.find(|c: char| c.is_whitespace() || c == ',');
            let (value, behind) = behind.split_at(end.unwrap_or(behind.len()));
            (value.to_owned(), behind)
        };
        rest = behind;
        if let Some(scheme) = schemes.last_mut() {
            scheme.parameters.push((word.to_ascii_lowercase(), value));
        }
    }
}

/// Returns the value of a quoted string without its first quotation mark, and the text behind it.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => {
                value.push(c);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '"' => return (value, text.get(at + 1..).unwrap_or_default()),
            _ => value.push(c),
        }
    }
    (value, "")
}

/// Returns the challenge of a scheme; `None` if it is not known, or cannot be answered.
fn challenge(scheme: &AuthScheme) -> Option<Challenge> {
    let parameter = |name: &str| {
        let mut found = scheme.parameters.iter().filter(|(own, _)| own == name);
        found.next().map(|(_, value)| value.as_str())
    };
    let says_true =
        |name: &str| parameter(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let values = scheme.parameters.iter().map(|(_, value)| value);
    if values
        .into_iter()
        .any(|value| value.contains(char::is_control))
    {
        return None;
    }
    let realm = parameter("realm").unwrap_or_default().to_owned();
    match scheme.name.as_str() {
        "basic" => Some(Challenge::Basic { realm }),
        "digest" => {
            let algorithm = algorithm(parameter("algorithm"))?;
            let qualities = parameter("qop");
            let has_auth = |qualities: &str| {
                let mut qualities = qualities.split(',').map(str::trim);
                qualities.any(|quality| quality.eq_ignore_ascii_case("auth"))
            };
            // Only `auth-int`, which hashes the body too: nothing that a crawler sends has one.
            if !qualities.is_none_or(has_auth) {
                return None;
            }
            Some(Challenge::Digest(DigestChallenge {
                realm,
                nonce: parameter("nonce")?.to_owned(),
                opaque: parameter("opaque").map(str::to_owned),
                algorithm,
                has_quality: qualities.is_some(),
                hides_user: says_true("userhash"),
                is_stale: says_true("stale"),
            }))
        }
        _ => None,
    }
}

/// Returns the algorithm of a name; `None` if it is not known.
fn algorithm(name: Option<&str>) -> Option<DigestAlgorithm> {
    let (hash, is_session) = match name.unwrap_or("MD5").to_ascii_lowercase().as_str() {
        "md5" => (DigestHash::Md5, false),
        "md5-sess" => (DigestHash::Md5, true),
        "sha-256" => (DigestHash::Sha256, false),
        "sha-256-sess" => (DigestHash::Sha256, true),
        _ => return None,
    };
    Some(DigestAlgorithm {
        name: name.map(str::to_owned),
        hash,
        is_session,
    })
}
