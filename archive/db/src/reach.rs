//! The point that a database has reached, for users that keep it in a second place.

use std::fmt;
use std::str::FromStr;

/// The point that a database has reached. As text: the sequence number, a space, the identity; without an identity, the
/// number alone.
///
/// Kept in a second place after a commit, it tells at the next [`crate::Database::open`], by
/// [`crate::Options::reaches`], that commits are gone: that the end of a log was lost, or that another database was put
/// in its place, such as a copy from before a rebuild, whose sequence numbers may be higher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The sequence number of the last commit.
    pub sequence: u64,
    /// The [`crate::Database::identity`]; `None` if a release that did not know it has kept the point.
    pub identity: Option<String>,
}

impl fmt::Display for Reach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.identity {
            Some(identity) => write!(formatter, "{} {identity}", self.sequence),
            None => write!(formatter, "{}", self.sequence),
        }
    }
}

/// The error of a text that is not a [`Reach`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has no sequence number")]
pub struct InvalidReach;

impl FromStr for Reach {
    type Err = InvalidReach;

    fn from_str(text: &str) -> Result<Self, InvalidReach> {
        let mut words = text.split_whitespace();
        let number = words.next().ok_or(InvalidReach)?;
        Ok(Self {
            sequence: number.parse().or(Err(InvalidReach))?,
            identity: words.next().map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the number or the identity of a point is lost when the point is written and read, or a text without a
    /// number passes.
    #[test]
    fn text_says_what_it_was_made_from() {
        for identity in [None, Some("8d1f6a4c".to_owned())] {
            let reach = Reach {
                sequence: u64::MAX,
                identity,
            };
            assert_eq!(reach.to_string().parse(), Ok(reach));
        }
        for wrong in ["", " ", "many", "-1", "99999999999999999999", "1a b"] {
            assert_eq!(wrong.parse::<Reach>(), Err(InvalidReach), "{wrong}");
        }
    }
}
