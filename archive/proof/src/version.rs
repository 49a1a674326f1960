//! The version with which every signed or kept document of this crate begins: `holdfast-<kind>/<major>[.<minor>]`.
//!
//! A new minor version may add fields, which are tolerated. A new major version may change what a field means, and is
//! refused, by name.

use serde::Deserialize;

/// A document of another kind or major version than this build reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the document is `{found}`; this build reads `{expected}`: use a build that knows it")]
pub struct UnknownVersion {
    /// The version that the document names; at most 80 characters of it.
    pub found: String,
    /// The version that was expected.
    pub expected: &'static str,
}

#[derive(Deserialize)]
struct VersionedMessage {
    version: String,
}

/// Parses `json` as a `T` if its `version` is `expected` (with any minor version).
pub(crate) fn parse_versioned<'de, T, E>(json: &'de [u8], expected: &'static str) -> Result<T, E>
where
    T: Deserialize<'de>,
    E: From<UnknownVersion> + From<serde_json::Error>,
{
    let VersionedMessage { version } = serde_json::from_slice(json)?;
    let minor = version.strip_prefix(expected).and_then(|rest| {
        if rest.is_empty() {
            Some("0")
        } else {
            rest.strip_prefix('.')
        }
    });
    if !minor
        .is_some_and(|minor| !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Err(UnknownVersion {
            found: version.chars().take(80).collect(),
            expected,
        }
        .into());
    }
    Ok(serde_json::from_slice(json)?)
}
