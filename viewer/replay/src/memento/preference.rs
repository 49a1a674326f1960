//! Preferences of a client about how a capture is shown: `Prefer` (RFC 7240), with the words of pywb and of Memento
//! clients.

use crate::request::Modifier;

use super::AnswerField;

/// A preference that is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// `raw`: the bytes as they were captured.
    Raw,
    /// `original-content`: the same, in the words of the Memento draft.
    OriginalContent,
    /// `original-links`: the same, because links within unchanged bytes are unchanged.
    OriginalLinks,
    /// `banner-only`: the page as it was, with a banner.
    BannerOnly,
    /// `rewritten`: the page with links into the archive.
    Rewritten,
}

impl Preference {
    const ALL: [Self; 5] = [
        Self::Raw,
        Self::OriginalContent,
        Self::OriginalLinks,
        Self::BannerOnly,
        Self::Rewritten,
    ];

    /// Returns the first preference that is known, of all `Prefer` fields; the others are ignored, as RFC 7240 says.
    pub fn read_preference<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        values
            .into_iter()
            .flat_map(|value| value.split(|byte| *byte == b','))
            .find_map(|member| {
                let name = member.split(|byte| matches!(byte, b';' | b'=')).next()?;
                let is = |known: &Self| {
                    name.trim_ascii()
                        .eq_ignore_ascii_case(known.name().as_bytes())
                };
                Self::ALL.into_iter().find(is)
            })
    }

    /// Returns the name of the preference in headers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::OriginalContent => "original-content",
            Self::OriginalLinks => "original-links",
            Self::BannerOnly => "banner-only",
            Self::Rewritten => "rewritten",
        }
    }

    /// Returns the modifier of what is preferred.
    pub const fn modifier(self) -> Modifier {
        match self {
            Self::Raw | Self::OriginalContent | Self::OriginalLinks => Modifier::Identity,
            Self::BannerOnly => Modifier::Banner,
            Self::Rewritten => Modifier::Main,
        }
    }

    /// Returns the field that says that the preference of the client was met.
    pub fn applied_field(self) -> AnswerField {
        ("Preference-Applied", self.name().to_owned())
    }
}
