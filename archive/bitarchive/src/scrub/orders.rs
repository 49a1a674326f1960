//! The orders of people to the scrub, kept over restarts in `<node data>/scrub.json`.
//!
//! A file that cannot be read is no reason not to scrub: it counts as no orders.

use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_daemon::worker::MAX_PAUSE;
use archive_durable::{DiskError, read_state, replace_file};
use archive_model::time_after;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

const FORMAT: &str = "holdfast-scrub/1";

/// The stored orders, and what is remembered with them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredOrders {
    format: String,
    /// The time until which the scrub is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
    /// The most bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// The time since which there are copies that were not verified since the catalog was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_since: Option<Timestamp>,
}

impl StoredOrders {
    /// Reads the orders. A pause that ends later than any pause may was noted by a wrong clock.
    pub fn read_orders(data: &Path, now: Timestamp) -> Self {
        let path = path(data);
        let read = read_state(&path).map_err(|error| error.to_string());
        let parsed = read.and_then(|text| match text {
            None => Ok(Self::default()),
            Some(text) => match serde_json::from_slice::<Self>(&text) {
                Ok(orders) if orders.format == FORMAT => Ok(orders),
                Ok(other) => Err(format!("it has the format {}", other.format)),
                Err(error) => Err(error.to_string()),
            },
        });
        let mut orders = parsed.unwrap_or_else(|why| {
            tracing::warn!(path = %path.display(), why, "the orders to the scrub cannot be read; it goes on by its settings");
            Self::default()
        });
        orders.paused_until = orders
            .paused_until
            .map(|until| until.min(end_of(MAX_PAUSE, now)));
        orders
    }

    /// Writes the orders, durably.
    ///
    /// # Errors
    ///
    /// Returns a [`DiskError`] if the disk fails.
    pub fn write_orders(&self, data: &Path) -> Result<(), DiskError> {
        let path = path(data);
        let orders = Self {
            format: FORMAT.to_owned(),
            ..self.clone()
        };
        let text = serde_json::to_vec_pretty(&orders)
            .map_err(|error| DiskError::new("write", &path, std::io::Error::other(error)))?;
        replace_file(&path, &text)
    }

    /// Returns the end of the pause, if the scrub is paused now.
    pub fn pause_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.paused_until.filter(|until| *until > now)
    }
}

fn path(data: &Path) -> PathBuf {
    data.join("scrub.json")
}

/// Returns the end of a pause that begins now, which is never later than the longest pause allows.
pub(crate) fn end_of(pause: Duration, now: Timestamp) -> Timestamp {
    time_after(now, pause.min(MAX_PAUSE))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and damage files")]
mod tests {
    use super::*;

    /// Fails if a restart forgets a pause, or a damaged file stops the scrub.
    #[test]
    fn orders_survive_and_damaged_ones_are_dropped() {
        let data = crate::testing::directory();
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        assert_eq!(
            StoredOrders::read_orders(data.path(), now),
            StoredOrders::default()
        );
        let orders = StoredOrders {
            paused_until: Some(end_of(Duration::from_hours(2), now)),
            bytes_per_second: Some(7),
            unknown_since: Some(now),
            ..StoredOrders::default()
        };
        orders.write_orders(data.path()).unwrap();
        let read = StoredOrders::read_orders(data.path(), now);
        assert_eq!(read.pause_end(now), orders.paused_until);
        assert_eq!(read.pause_end(end_of(Duration::from_hours(2), now)), None);
        assert_eq!(
            (read.bytes_per_second, read.unknown_since),
            (Some(7), Some(now))
        );
        let earlier = now - Duration::from_hours(48);
        assert_eq!(
            StoredOrders::read_orders(data.path(), earlier).pause_end(earlier),
            Some(end_of(MAX_PAUSE, earlier)),
            "a pause never lasts longer than a day"
        );
        for bad in ["", "{", "{\"format\":\"holdfast-scrub/9\"}", "[]"] {
            std::fs::write(path(data.path()), bad).unwrap();
            assert_eq!(
                StoredOrders::read_orders(data.path(), now),
                StoredOrders::default(),
                "{bad}"
            );
        }
    }
}
