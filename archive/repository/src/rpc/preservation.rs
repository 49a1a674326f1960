//! The door `Preservation`: checks, anomalies, repairs, and the verbs of people. Decodes, asks, and encodes.

use proto_archive::wire::preservation_server::Preservation;

use super::Door;

#[tonic::async_trait]
impl Preservation for Door {}
