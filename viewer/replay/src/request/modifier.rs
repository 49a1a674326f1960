//! Modifiers: the two letters behind a time that say how a capture is shown.

/// The form in which a capture is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Modifier {
    /// `id_`: the bytes of the payload, unchanged.
    Identity,
    /// `ir_`: the same bytes, with redirects that stay in the archive.
    IdentityRedirect,
    /// `mp_`: a page, for a frame.
    Main,
    /// `if_`: a page in a frame of the page.
    InnerFrame,
    /// `js_`: a script.
    Script,
    /// `cs_`: a style sheet.
    Style,
    /// `im_`: an image.
    Image,
    /// `oe_`: an object, a video.
    Object,
    /// `fr_`: a frame of a frameset.
    Frame,
    /// `sw_`: a service worker.
    ServiceWorker,
    /// `bn_`: the page as it was, with a banner.
    Banner,
}

impl Modifier {
    const ALL: [Self; 11] = [
        Self::Identity,
        Self::IdentityRedirect,
        Self::Main,
        Self::InnerFrame,
        Self::Script,
        Self::Style,
        Self::Image,
        Self::Object,
        Self::Frame,
        Self::ServiceWorker,
        Self::Banner,
    ];

    /// The names of all modifiers.
    pub const NAMES: [&'static str; 11] = [
        "id_", "ir_", "mp_", "if_", "js_", "cs_", "im_", "oe_", "fr_", "sw_", "bn_",
    ];

    /// Returns the name of the modifier, as it stands in a path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "id_",
            Self::IdentityRedirect => "ir_",
            Self::Main => "mp_",
            Self::InnerFrame => "if_",
            Self::Script => "js_",
            Self::Style => "cs_",
            Self::Image => "im_",
            Self::Object => "oe_",
            Self::Frame => "fr_",
            Self::ServiceWorker => "sw_",
            Self::Banner => "bn_",
        }
    }

    /// Returns the modifier of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Returns whether the bytes of the payload are given unchanged.
    pub const fn is_raw(self) -> bool {
        matches!(self, Self::Identity | Self::IdentityRedirect)
    }
}
