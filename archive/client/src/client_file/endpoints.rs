//! The section `[endpoints]` of a client file: the addresses of the parts. Not promised: that a part listens at its
//! address.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The addresses of the parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct Endpoints {
    /// The address of the repository, `host:port`.
    pub repository: String,
    /// The address of the index of captures, `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// The beginning of the addresses of the pages for people, such as `http://localhost:7409`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<String>,
    /// The beginning of the addresses of the replay listener, such as `http://127.0.0.1:7408`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// The address of the proxy that shows the archive in place of the web, `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
}
