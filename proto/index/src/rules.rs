//! The roles that may call each RPC of the index. An RPC without a rule is refused to everyone, and a server that
//! offers it does not start.

use archive_rpc::{Role, Rules};

/// Returns the rules of `holdfast.index.v1`.
///
/// A role that includes another (a researcher is a reader) need not be named beside it.
pub fn index_rules() -> Rules {
    Rules::new()
        .allow_call(
            "/holdfast.index.v1.Captures/Query",
            &[Role::Reader, Role::Viewer],
        )
        .allow_call("/holdfast.index.v1.Captures/Status", &[Role::Operator])
        .allow_call("/holdfast.index.v1.Captures/Retry", &[Role::Operator])
        .allow_call("/holdfast.index.v1.Captures/Rebuild", &[Role::Operator])
        .allow_call("/holdfast.index.v1.Captures/Import", &[Role::Operator])
        .allow_call("/holdfast.index.v1.Captures/Export", &[Role::Operator])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if an RPC has no rule, or a rule names no RPC.
    #[test]
    fn rules_and_rpcs_are_the_same() {
        archive_rpc::testing::check_rules(&index_rules(), crate::DESCRIPTORS);
    }
}
