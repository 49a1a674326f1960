//! Conflicts leave a line in the trail: who sent which bytes, and with what they were compared.

use archive_decisions::store::{Claim, Requester};
use archive_ledger::admin::AuditLine;
use archive_model::{ArchiveError, FileName};
use jiff::Timestamp;

use super::Coordinator;

impl Coordinator {
    /// Returns the line of the trail about a depositor that is refused because its bytes differ; `None` for any other
    /// answer.
    pub(super) fn find_refusal(
        &self,
        name: &FileName,
        requester: Requester,
        result: &Result<(), ArchiveError>,
        now: Timestamp,
    ) -> Option<AuditLine> {
        let Err(error @ (ArchiveError::Exists { .. } | ArchiveError::Mismatch { .. })) = result
        else {
            return None;
        };
        let depositor = self.depositors.get(&requester)?;
        let sent = match &depositor.received {
            Some(root) => format!("received root {root}"),
            None => announced(&depositor.claim),
        };
        Some(AuditLine {
            at: now,
            who: depositor.who.clone(),
            file: Some(name.clone()),
            what: format!("refused to store: {error}; {sent}"),
        })
    }
}

fn announced(claim: &Claim) -> String {
    let digests = [
        claim.root.map(|root| format!("root {root}")),
        claim
            .digests
            .sha256
            .map(|digest| format!("sha256 {}", hex::encode(digest))),
        claim
            .digests
            .md5
            .map(|digest| format!("md5 {}", hex::encode(digest))),
    ];
    let digests: Vec<String> = digests.into_iter().flatten().collect();
    let size = claim.size;
    if digests.is_empty() {
        return format!("announced {size} bytes and no digest");
    }
    format!("announced {size} bytes, {}", digests.join(", "))
}
