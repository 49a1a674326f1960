//! The point that a database has reached, for users that keep it in a second place.

use std::fmt;
use std::str::FromStr;

/// The point that a database has reached. As text: the sequence number, a space, the identity.
///
/// Kept in a second place after a commit, it tells at the next [`crate::Database::open`], by
/// [`crate::DatabaseOptions::with_reach`], that commits are gone: that the end of a log was lost, or that another database was put
/// in its place, such as a copy from before a rebuild, whose sequence numbers may be higher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The sequence number of the last commit.
    pub sequence: u64,
    /// The [`crate::Database::identity`].
    pub identity: String,
}

impl fmt::Display for Reach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.sequence, self.identity)
    }
}

/// The error of a text that is not a [`Reach`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a sequence number and the identity of a database")]
pub struct InvalidReach;

impl FromStr for Reach {
    type Err = InvalidReach;

    fn from_str(text: &str) -> Result<Self, InvalidReach> {
        let (number, identity) = text.trim_end().split_once(' ').ok_or(InvalidReach)?;
        if identity.contains(char::is_whitespace) {
            return Err(InvalidReach);
        }
        Ok(Self {
            sequence: number.parse().or(Err(InvalidReach))?,
            identity: identity.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the number or the identity of a point is lost when the point is written and read, or a text without
    /// one of them passes.
    #[test]
    fn text_says_what_it_was_made_from() {
        let reach = Reach {
            sequence: u64::MAX,
            identity: "8d1f6a4c".to_owned(),
        };
        assert_eq!(reach.to_string().parse(), Ok(reach));
        for wrong in [
            "",
            " ",
            "many",
            "1",
            "1 ",
            "-1 a",
            "99999999999999999999 a",
            "1a b",
            "1 a b",
        ] {
            assert_eq!(wrong.parse::<Reach>(), Err(InvalidReach), "{wrong}");
        }
    }
}
