//! A run of a batch job that broke off because of one node: which one, in the details of the status.
//!
//! Not promised: that the node is at fault for ever. Whoever asks again may find it well.

use archive_model::NodeId;
use archive_rpc::Kind;
use prost::Message;
use tonic::Status;

use crate::wire;

/// The status that ends a run because of a node.
pub fn broken(kind: Kind, node: &NodeId, message: impl Into<String>) -> Status {
    let status = kind.status(message);
    let details = wire::BatchBroken {
        node: node.to_string(),
    };
    Status::with_details_and_metadata(
        status.code(),
        status.message(),
        details.encode_to_vec().into(),
        status.metadata().clone(),
    )
}

/// The node that a status names as the reason. None: it names none, or nothing that can be one.
pub fn broken_node(status: &Status) -> Option<NodeId> {
    if status.details().is_empty() {
        return None;
    }
    let details = wire::BatchBroken::decode(status.details()).ok()?;
    NodeId::new(&details.node).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Through the headers, as over the wire.
    fn sent(status: &Status) -> Status {
        let mut headers = tonic::codegen::http::HeaderMap::new();
        status.add_header(&mut headers).unwrap();
        Status::from_header_map(&headers).unwrap()
    }

    #[test]
    fn the_node_survives_the_wire_beside_the_kind_and_the_words() {
        let node = NodeId::new("one-2").unwrap();
        for kind in Kind::ALL {
            let received = sent(&broken(kind, &node, "node one-2: gone"));
            assert_eq!(broken_node(&received), Some(node.clone()));
            assert_eq!(Kind::of(&received), kind);
            assert_eq!(received.code(), kind.code());
            assert_eq!(received.message(), "node one-2: gone");
        }
    }

    #[test]
    fn details_that_name_no_node_name_none() {
        let plain = Kind::Unavailable.status("node one-2: gone");
        assert_eq!(broken_node(&sent(&plain)), None);
        let bad = |details: Vec<u8>| {
            Status::with_details(tonic::Code::Unavailable, "node a: gone", details.into())
        };
        let named = |node: &str| {
            let node = node.to_owned();
            wire::BatchBroken { node }.encode_to_vec()
        };
        for details in [
            vec![0xff; 40],
            named(""),
            named("../x"),
            named(&"n".repeat(10_000)),
        ] {
            assert_eq!(broken_node(&sent(&bad(details))), None);
        }
        let mut cut = named("one-2");
        cut.pop();
        assert_eq!(broken_node(&sent(&bad(cut))), None);
    }
}
