//! The way by which a crawl came to a URI: the hops from its seed, a letter each, as Heritrix writes them into its
//! crawl log.
//!
//! ```
//! use harvest_policy::hops::{Hop, HopPath};
//!
//! let page: HopPath = "LLE".parse()?;
//! assert_eq!(page.followed_by(Hop::Redirect).to_string(), "LLER");
//! assert_eq!(HopPath::seed_path().to_string(), "-");
//! # Ok::<(), harvest_policy::hops::InvalidHop>(())
//! ```

use std::fmt;
use std::str::FromStr;

/// The way in which one URI led to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hop {
    /// A link that a person would follow.
    Link,
    /// A part of the page: an image, a style sheet, a script.
    Embed,
    /// A redirect by the host.
    Redirect,
    /// A string in a script that looks like a URI.
    Speculative,
    /// Something that has to be fetched first: `dns:`, robots.txt.
    Prerequisite,
    /// Guessed from the URI itself: `/favicon.ico`.
    Inferred,
    /// Named in robots.txt or a sitemap.
    Manifest,
    /// The target of a form.
    Submit,
}

impl Hop {
    const ALL: [Self; 8] = [
        Self::Link,
        Self::Embed,
        Self::Redirect,
        Self::Speculative,
        Self::Prerequisite,
        Self::Inferred,
        Self::Manifest,
        Self::Submit,
    ];

    /// Returns the letter of the hop in the crawl log.
    pub const fn letter(self) -> char {
        match self {
            Self::Link => 'L',
            Self::Embed => 'E',
            Self::Redirect => 'R',
            Self::Speculative => 'X',
            Self::Prerequisite => 'P',
            Self::Inferred => 'I',
            Self::Manifest => 'M',
            Self::Submit => 'S',
        }
    }

    /// Returns the hop of a letter of the crawl log.
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find(|hop| hop.letter() == letter)
    }

    /// Returns whether a person goes this way to another page.
    const fn is_navigation(self) -> bool {
        matches!(self, Self::Link | Self::Submit)
    }
}

/// A letter that names no hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no hop of a crawl log; the letters are L, E, R, X, P, I, M and S")]
pub struct InvalidHop(char);

/// The hops from a seed to a URI, the first one first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopPath(Vec<Hop>);

impl HopPath {
    /// Returns the path to a seed: no hop at all.
    pub const fn seed_path() -> Self {
        Self(Vec::new())
    }

    /// Returns the path one hop further.
    #[must_use]
    pub fn followed_by(&self, hop: Hop) -> Self {
        Self(self.0.iter().copied().chain([hop]).collect())
    }

    /// Returns whether the path is that of a seed.
    pub fn is_seed(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of hops.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no hop.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the hop that led to the URI; `None` of a seed.
    pub fn last(&self) -> Option<Hop> {
        self.0.last().copied()
    }

    /// Returns whether the path is that of a seed, or of a URI that was reached from one by redirects alone.
    pub fn is_redirected_seed(&self) -> bool {
        self.0.iter().all(|hop| *hop == Hop::Redirect)
    }

    /// Returns the hops behind the last one that a person would follow: how deep within one page the URI is.
    pub fn within_page(&self) -> &[Hop] {
        let page = self.0.iter().rposition(|hop| hop.is_navigation());
        &self.0[page.map_or(0, |at| at + 1)..]
    }
}

impl fmt::Display for HopPath {
    /// Writes all letters, or `-` of a seed. (Heritrix leaves out the first ones of a long path.)
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        let mut hops = self.0.iter();
        hops.try_for_each(|hop| write!(f, "{}", hop.letter()))
    }
}

impl FromStr for HopPath {
    type Err = InvalidHop;

    /// Reads letters, or `-`. A number of hops that Heritrix has left out is not read: nobody knows which they were.
    fn from_str(text: &str) -> Result<Self, InvalidHop> {
        if text == "-" {
            return Ok(Self::seed_path());
        }
        let hop = |letter| Hop::from_letter(letter).ok_or(InvalidHop(letter));
        text.chars().map(hop).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a letter is written that is not read again, or two hops share one.
    #[test]
    fn letters_are_read_as_written() {
        for hop in Hop::ALL {
            assert_eq!(Hop::from_letter(hop.letter()), Some(hop));
        }
        let path: HopPath = "LREXPIMS".parse().unwrap();
        assert_eq!(path.to_string(), "LREXPIMS");
        assert_eq!("-".parse(), Ok(HopPath::seed_path()));
        assert_eq!("LQ".parse::<HopPath>(), Err(InvalidHop('Q')));
    }

    /// Fails if a long path loses hops when it is written and read, so that a page deep in a site counts as a seed.
    #[test]
    fn long_path_is_kept_whole() {
        let letters = format!("{}E", "L".repeat(1000));
        let long: HopPath = letters.parse().unwrap();
        assert_eq!((long.to_string(), long.len()), (letters, 1001));
        assert_eq!("11+LLE".parse::<HopPath>(), Err(InvalidHop('1')));
    }

    /// Fails if a link is taken for a part of the page, or an embed for another page.
    #[test]
    fn depth_within_page_begins_behind_last_link() {
        let depth = |text: &str| text.parse::<HopPath>().unwrap().within_page().len();
        for (path, expected) in [
            ("-", 0),
            ("L", 0),
            ("LE", 1),
            ("LER", 2),
            ("E", 1),
            ("LEL", 0),
            ("SEX", 2),
        ] {
            assert_eq!(depth(path), expected, "{path}");
        }
    }
}
