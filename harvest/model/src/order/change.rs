//! A change of the order of a job that has begun.
//!
//! Owns which keys may change. While a job runs these are `[scope]` (but `seed_redirects`), `[politeness]`, overlays
//! (but the limits of queues, which a person changes by queue) and the limits of the whole job; while it does not run,
//! all but what the queues are named by.

use toml::Table;

use super::{CrawlOrder, InvalidOrder, Overlay, PrintOrderError};

/// The state of a job whose order is to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobActivity {
    /// Its crawl runs.
    Running,
    /// Nothing of it runs.
    Stopped,
}

/// The reason why an order cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum OrderChangeError {
    /// The change is no order, or the changed order contradicts itself.
    #[error(transparent)]
    Invalid(#[from] InvalidOrder),
    /// The orders cannot be compared.
    #[error(transparent)]
    Print(#[from] PrintOrderError),
    /// A key that holds for the whole life of a job.
    #[error("{key} cannot change {when}; leave it out")]
    Fixed {
        /// The key, with its section.
        key: String,
        /// The state of the job in words.
        when: &'static str,
    },
    /// Nothing is changed.
    #[error(
        "it changes nothing; write the keys that are to change, such as `[politeness]` and below it `min_delay = \"5 s\"`"
    )]
    Nothing,
}

impl CrawlOrder {
    /// Returns the order with the keys of a text in place of its own; a list replaces the whole list.
    ///
    /// # Errors
    ///
    /// [`OrderChangeError`]: the order stays as it is.
    pub fn changed_by(&self, text: &str, activity: JobActivity) -> Result<Self, OrderChangeError> {
        // Its lines are those that a person has written.
        Self::parse(text)?;
        let change: Table =
            toml::from_str(text).map_err(|error| InvalidOrder::from_toml(&error, text))?;
        let mut merged = self.to_table_with_passwords()?;
        merge(&mut merged, change);
        let merged = toml::to_string(&merged).map_err(PrintOrderError::from)?;
        let changed = Self::parse(&merged)?;
        if changed == *self {
            return Err(OrderChangeError::Nothing);
        }
        let when = match activity {
            JobActivity::Running => "while the job runs",
            JobActivity::Stopped => "once the job has begun",
        };
        match first_difference(
            &self.to_table_with_passwords()?,
            &self
                .unchanged_by(&changed, activity)
                .to_table_with_passwords()?,
            "",
        ) {
            None => Ok(changed),
            Some(key) => Err(OrderChangeError::Fixed { key, when }),
        }
    }

    /// Returns another order with all keys of this one that may change.
    fn unchanged_by(&self, other: &Self, activity: JobActivity) -> Self {
        if activity == JobActivity::Stopped {
            let mut own = self.clone();
            own.queues.by = other.queues.by;
            own.queues
                .public_suffixes
                .clone_from(&other.queues.public_suffixes);
            return own;
        }
        let mut fixed = other.clone();
        fixed.scope = self.scope.clone();
        fixed.scope.seed_redirects = other.scope.seed_redirects;
        fixed.politeness = self.politeness.clone();
        fixed.limits.max_objects = self.limits.max_objects;
        fixed.limits.max_bytes = self.limits.max_bytes;
        fixed.limits.max_time = self.limits.max_time;
        fixed.limits.idle = self.limits.idle;
        let queue_limits = |overlay: &Overlay| {
            (
                overlay.precedence,
                overlay.session_budget,
                overlay.error_penalty,
                overlay.total_budget,
                overlay.max_objects,
                overlay.max_bytes,
            )
        };
        let mut limited = other.overlays.iter().filter(|overlay| {
            let none = (None, None, None, None, None, None);
            queue_limits(overlay) != none && !self.overlays.contains(overlay)
        });
        if limited.next().is_none() {
            fixed.overlays.clone_from(&self.overlays);
        }
        fixed
    }
}

fn merge(into: &mut Table, change: Table) {
    for (key, value) in change {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(change)) => merge(below, change),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// Returns the first key in which two tables differ, with its section.
fn first_difference(a: &Table, b: &Table, section: &str) -> Option<String> {
    let name = |key: &str| match section {
        "" => key.to_owned(),
        section => format!("{section}.{key}"),
    };
    let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
    for key in keys {
        match (a.get(key), b.get(key)) {
            (Some(toml::Value::Table(a)), Some(toml::Value::Table(b))) => {
                if let Some(difference) = first_difference(a, b, &name(key)) {
                    return Some(difference);
                }
            }
            (a, b) if a == b => {}
            _ => return Some(name(key)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a key may change that the running crawl has no new value for, one may not that it has, or a slip is taken.
    #[test]
    fn only_what_a_running_crawl_heeds_changes() {
        use JobActivity::{Running, Stopped};
        let order =
            CrawlOrder::parse("[politeness]\nmin_delay = \"7 s\"\n[limits]\nmax_objects = 9\n")
                .unwrap();
        for (text, running, stopped) in [
            ("[politeness]\nmin_delay = \"1 s\"", None, None),
            ("[limits]\nmax_objects = 90", None, None),
            ("[scope]\nmax_hops = 3", None, None),
            (
                "[[overlay]]\nsurt = \"http://(dk,a,\"\nmin_delay = \"9 s\"",
                None,
                None,
            ),
            (
                "[[overlay]]\nsurt = \"http://(dk,a,\"\nmax_objects = 9",
                Some("overlay cannot change while"),
                None,
            ),
            (
                "[scope]\nseed_redirects = \"off\"",
                Some("scope.seed_redirects"),
                None,
            ),
            ("[http]\ncookies = false", Some("http.cookies"), None),
            (
                "[queues]\nby = \"host\"",
                Some("queues.by"),
                Some("queues.by cannot change once"),
            ),
            (
                "[politeness]\nmin_delay = \"7 s\"",
                Some("changes nothing"),
                Some("changes nothing"),
            ),
            (
                "[politeness]\nmin_dely = \"7 s\"",
                Some("line 2"),
                Some("min_dely"),
            ),
        ] {
            for (activity, expected) in [(Running, running), (Stopped, stopped)] {
                match (order.changed_by(text, activity), expected) {
                    (Ok(changed), None) => assert_ne!(changed, order),
                    (Err(error), Some(words)) => {
                        assert!(error.to_string().contains(words), "{text}: {error}");
                    }
                    (result, _) => panic!("{text}, {activity:?}: {result:?}"),
                }
            }
        }
        let changed = order
            .changed_by("[politeness]\nmin_delay = \"1 s\"", Running)
            .unwrap();
        assert_eq!(changed.limits.max_objects, Some(9));
    }
}
