//! Overlays: other settings for a part of the web (the sheets of Heritrix).
//!
//! Owns which keys an overlay may have. Of several that cover a URI all apply, and of one key the last one stands.

use archive_model::{ByteSize, Period};
use harvest_policy::politeness::Politeness;
use harvest_policy::scope::ScopeOverlay;
use harvest_policy::surt::SurtPrefix;
use harvest_policy::traps::{InvalidTrap, TrapExpression, TrapList};

use super::section::entry;
use super::sections::{QueueSettings, RobotsPolicy, ScopeKind};
use crate::text;

entry! {
    /// Other settings for what a prefix covers. Of several overlays all apply, and of one key the last one stands.
    Overlay {
        /// The prefix in SURT form, such as `http://(dk,example,`.
        #[serde(with = "text::one")]
        surt: SurtPrefix,
        /// As in `[politeness]`.
        delay_factor: Option<f64>,
        /// As in `[politeness]`.
        min_delay: Option<Period>,
        /// As in `[politeness]`.
        max_delay: Option<Period>,
        /// As in `[politeness]`.
        max_crawl_delay: Option<Period>,
        /// As in `[politeness]`.
        max_bandwidth: Option<ByteSize>,
        /// As in `[http]`.
        user_agent: Option<String>,
        /// As policy in `[robots]`.
        robots: Option<RobotsPolicy>,
        /// As in `[limits]`.
        max_body: Option<ByteSize>,
        /// As `kind` in `[scope]`, for the seeds that are covered.
        seed_scope: Option<ScopeKind>,
        /// As in `[scope]`.
        max_hops: Option<usize>,
        /// As in `[scope]`.
        max_embed_hops: Option<usize>,
        /// As in `[scope]`.
        max_speculative_hops: Option<usize>,
        /// As in `[scope]`.
        max_path_segments: Option<usize>,
        /// As in `[scope]`.
        max_path_repeats: Option<usize>,
        /// Crawler traps as in `[scope]`, beside those that are there.
        #[serde(with = "text::list", default, skip_serializing_if = "Vec::is_empty")]
        traps: Vec<TrapExpression>,
        /// As in `[queues]`, for the queues whose domain or host is covered.
        precedence: Option<u8>,
        /// As in `[queues]`, for the queues whose domain or host is covered.
        session_budget: Option<u64>,
        /// As in `[queues]`, for the queues whose domain or host is covered.
        error_penalty: Option<u64>,
        /// As in `[queues]`, for the queues whose domain or host is covered.
        total_budget: Option<u64>,
        /// As in `[queues]`, for the queues whose domain or host is covered.
        max_objects: Option<u64>,
        /// As `max_bytes` in `[queues]`, for the queues whose domain or host is covered.
        max_bytes: Option<ByteSize>,
    }
}

impl Overlay {
    /// Returns the part of the scope that is set.
    pub(super) fn scope_overlay(&self) -> Result<ScopeOverlay, InvalidTrap> {
        Ok(ScopeOverlay {
            prefix: self.surt.clone(),
            traps: TrapList::new(&self.traps)?,
            max_hops: self.max_hops,
            max_hops_in_page: self.max_embed_hops,
            max_speculative_hops: self.max_speculative_hops,
            max_segments: self.max_path_segments,
            max_repeats: self.max_path_repeats,
        })
    }

    /// Returns the limits of queues, with those of `below` where none is set.
    pub(super) fn apply_to_queues(&self, below: &QueueSettings) -> QueueSettings {
        QueueSettings {
            precedence: self.precedence.unwrap_or(below.precedence),
            session_budget: self.session_budget.unwrap_or(below.session_budget),
            error_penalty: self.error_penalty.unwrap_or(below.error_penalty),
            total_budget: self.total_budget.or(below.total_budget),
            max_objects: self.max_objects.or(below.max_objects),
            max_bytes: self.max_bytes.or(below.max_bytes),
            ..below.clone()
        }
    }

    /// Returns the politeness, with the values of `below` where none is set.
    pub(super) fn apply_to_politeness(&self, below: Politeness) -> Politeness {
        let or = |own: Option<Period>, below| own.map_or(below, Period::duration);
        let bandwidth = self.max_bandwidth.map(ByteSize::bytes);
        Politeness {
            delay_factor: self.delay_factor.unwrap_or(below.delay_factor),
            min_delay: or(self.min_delay, below.min_delay),
            max_delay: or(self.max_delay, below.max_delay),
            max_crawl_delay: or(self.max_crawl_delay, below.max_crawl_delay),
            max_bytes_per_second: bandwidth.or(below.max_bytes_per_second),
        }
    }
}
