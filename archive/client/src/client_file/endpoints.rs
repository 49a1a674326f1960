//! The section `[endpoints]` of a client file: the addresses of the parts. Whether anybody listens there is not known.

use serde::{Deserialize, Serialize};

/// Where the parts are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoints {
    /// The repository, `host:port`.
    pub repository: String,
    /// The index of captures, `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// The pages for people: the beginning of their addresses, such as `http://localhost:7409`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<String>,
    /// The replay listener: the beginning of its addresses, such as `http://127.0.0.1:7408`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// The proxy that shows the archive where the web is asked for, `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
}
