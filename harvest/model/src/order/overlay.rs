//! Overlays: other settings for a part of the web (the sheets of Heritrix).
//!
//! Owns which keys an overlay may have. Of several that cover a URI all apply, and of one key the last one stands.

use archive_model::{ByteSize, Period};
use harvest_policy::politeness::Politeness;
use harvest_policy::surt::SurtPrefix;

use super::section::entry;
use super::sections::RobotsPolicy;
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
        /// As policy in `[robots]`.
        robots: Option<RobotsPolicy>,
        /// As in `[limits]`.
        max_body: Option<ByteSize>,
    }
}

impl Overlay {
    /// Lays what is set of the politeness over another one.
    pub(super) fn lay_over(&self, below: Politeness) -> Politeness {
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
