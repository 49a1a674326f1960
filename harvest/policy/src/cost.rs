//! The cost of a URI for its queue, and the order in which a queue is worked off (Heritrix' cost and precedence
//! policies).
//!
//! Owns both as functions of what is known of a URI before it is fetched. What costs add up to is the matter of
//! [`account`](crate::account).

use crate::hops::HopPath;

/// The cost of a URI for the budgets of its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CostPolicy {
    /// Every URI costs one (Heritrix' `UnitCostAssignmentPolicy`).
    #[default]
    Unit,
    /// A URI costs one, one more with a query, and another one if the page that led to it differs by its query only
    /// (Heritrix' `WagCostAssignmentPolicy`): what a script makes up uses up its budget sooner.
    Surplus,
}

impl CostPolicy {
    /// Returns the cost of a URI that another one led to.
    pub fn uri_cost(self, uri: &str, via: Option<&str>) -> u64 {
        match (self, uri.split_once('?')) {
            (Self::Unit, _) | (Self::Surplus, None) => 1,
            (Self::Surplus, Some((page, _))) => {
                let via = via.map(|via| via.split_once('?').map_or(via, |(page, _)| page));
                2 + u64::from(via == Some(page))
            }
        }
    }
}

/// The order of the URIs of a queue that are equally urgent. Equal ones come in the order in which they were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UriOrder {
    /// The cheap URIs come first (Heritrix' `CostUriPrecedencePolicy`).
    #[default]
    Cost,
    /// The URIs that few hops led to come first (Heritrix' `HopsUriPrecedencePolicy`): a site is crawled in its
    /// breadth.
    Hops,
}

impl UriOrder {
    /// Returns the place of a URI among those of its queue: the smaller, the sooner. Beyond 255 there is no difference.
    pub fn place_uri(self, cost: u64, hops: &HopPath) -> u8 {
        match self {
            Self::Cost => u8::try_from(cost).unwrap_or(u8::MAX),
            Self::Hops => u8::try_from(hops.len()).unwrap_or(u8::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a page costs more than its kind, or a query that makes more of itself costs no more than others.
    #[test]
    fn queries_cost_a_surplus() {
        for (uri, via, surplus) in [
            ("http://a.dk/", None, 1),
            ("http://a.dk/b", Some("http://a.dk/?c"), 1),
            ("http://a.dk/?b", None, 2),
            ("http://a.dk/?b", Some("http://a.dk/c"), 2),
            ("http://a.dk/?b", Some("http://a.dk/"), 3),
            ("http://a.dk/?b", Some("http://a.dk/?c"), 3),
            ("http://a.dk/?b?c", Some("http://a.dk/?b"), 3),
        ] {
            assert_eq!(CostPolicy::Unit.uri_cost(uri, via), 1, "{uri}");
            assert_eq!(
                CostPolicy::Surplus.uri_cost(uri, via),
                surplus,
                "{uri} {via:?}"
            );
        }
    }

    /// Fails if a queue takes a deep page first where breadth is asked for, or wraps around.
    #[test]
    fn order_follows_cost_or_hops() {
        let path = |count: usize| "L".repeat(count).parse::<HopPath>().unwrap();
        for (cost, hops, by_cost, by_hops) in [
            (1, 0, 1, 0),
            (3, 2, 3, 2),
            (300, 1, 255, 1),
            (1, 300, 1, 255),
        ] {
            assert_eq!(UriOrder::Cost.place_uri(cost, &path(hops)), by_cost);
            assert_eq!(UriOrder::Hops.place_uri(cost, &path(hops)), by_hops);
        }
    }
}
