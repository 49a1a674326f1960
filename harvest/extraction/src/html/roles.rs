//! Attributes of HTML and SVG that have references, and the hop of each.
//!
//! Attributes that mean something only together with others (`link`, `meta`, `base`, `form`, `script`) are read elsewhere.

use harvest_policy::hops::Hop;

/// The form of the value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A reference.
    Reference(Hop),
    /// References, with blanks between them.
    References(Hop),
    /// A `srcset`: embeds.
    Candidates,
    /// An embed that a script loads later; no standard says that it is a reference.
    Lazy,
    /// A string that may be a URL.
    Guess,
    /// Declarations of CSS.
    Style,
    /// A page.
    Html,
}

/// The meaning of an attribute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Role {
    /// The element, or `*`, and the attribute, as the context of a link names them.
    pub(super) context: &'static str,
    pub(super) form: Form,
}

const fn link(context: &'static str) -> Role {
    role(context, Form::Reference(Hop::Link))
}

const fn embed(context: &'static str) -> Role {
    role(context, Form::Reference(Hop::Embed))
}

const fn role(context: &'static str, form: Form) -> Role {
    Role { context, form }
}

/// The roles of attributes by their names.
const ROLES: [(&str, &[Role]); 43] = [
    (
        "href",
        &[
            link("a/@href"),
            link("area/@href"),
            embed("image/@href"),
            embed("use/@href"),
            embed("feimage/@href"),
            embed("script/@href"),
        ],
    ),
    (
        "xlink:href",
        &[link("a/@xlink:href"), embed("*/@xlink:href")],
    ),
    (
        "src",
        &[
            embed("img/@src"),
            embed("script/@src"),
            embed("iframe/@src"),
            embed("frame/@src"),
            embed("source/@src"),
            embed("input/@src"),
            embed("embed/@src"),
            embed("video/@src"),
            embed("audio/@src"),
            embed("track/@src"),
            embed("*/@src"),
        ],
    ),
    (
        "srcset",
        &[
            role("img/@srcset", Form::Candidates),
            role("source/@srcset", Form::Candidates),
        ],
    ),
    (
        "imagesrcset",
        &[role("link/@imagesrcset", Form::Candidates)],
    ),
    ("data", &[embed("object/@data")]),
    (
        "codebase",
        &[embed("object/@codebase"), embed("applet/@codebase")],
    ),
    ("poster", &[embed("video/@poster")]),
    ("background", &[embed("*/@background")]),
    ("lowsrc", &[embed("img/@lowsrc")]),
    ("dynsrc", &[embed("img/@dynsrc")]),
    ("manifest", &[embed("html/@manifest")]),
    ("cite", &[link("*/@cite")]),
    ("longdesc", &[link("*/@longdesc")]),
    ("profile", &[link("head/@profile")]),
    ("ping", &[role("*/@ping", Form::References(Hop::Link))]),
    ("srcdoc", &[role("iframe/@srcdoc", Form::Html)]),
    ("style", &[role("*/@style", Form::Style)]),
    (
        "value",
        &[
            role("param/@value", Form::Guess),
            role("option/@value", Form::Guess),
        ],
    ),
    ("data-href", &[role("*/@data-href", Form::Guess)]),
    ("data-url", &[role("*/@data-url", Form::Guess)]),
    ("data-link", &[role("*/@data-link", Form::Guess)]),
    ("data-src", &[role("*/@data-src", Form::Lazy)]),
    ("data-lazy", &[role("*/@data-lazy", Form::Lazy)]),
    ("data-lazy-src", &[role("*/@data-lazy-src", Form::Lazy)]),
    ("data-original", &[role("*/@data-original", Form::Lazy)]),
    (
        "data-original-src",
        &[role("*/@data-original-src", Form::Lazy)],
    ),
    ("data-actualsrc", &[role("*/@data-actualsrc", Form::Lazy)]),
    ("data-echo", &[role("*/@data-echo", Form::Lazy)]),
    ("data-image", &[role("*/@data-image", Form::Lazy)]),
    ("data-img", &[role("*/@data-img", Form::Lazy)]),
    ("data-thumb", &[role("*/@data-thumb", Form::Lazy)]),
    ("data-poster", &[role("*/@data-poster", Form::Lazy)]),
    ("data-bg", &[role("*/@data-bg", Form::Lazy)]),
    ("data-background", &[role("*/@data-background", Form::Lazy)]),
    (
        "data-background-image",
        &[role("*/@data-background-image", Form::Lazy)],
    ),
    ("data-full-src", &[role("*/@data-full-src", Form::Lazy)]),
    ("data-hi-res-src", &[role("*/@data-hi-res-src", Form::Lazy)]),
    ("data-large-file", &[role("*/@data-large-file", Form::Lazy)]),
    (
        "data-medium-file",
        &[role("*/@data-medium-file", Form::Lazy)],
    ),
    ("data-srcset", &[role("*/@data-srcset", Form::Candidates)]),
    (
        "data-lazy-srcset",
        &[role("*/@data-lazy-srcset", Form::Candidates)],
    ),
    ("data-bgset", &[role("*/@data-bgset", Form::Candidates)]),
];

/// The role of an attribute of an element; both names are in small letters.
pub(super) fn of(element: &str, attribute: &str) -> Option<Role> {
    let (_, roles) = ROLES.iter().find(|(name, _)| *name == attribute)?;
    let is_of = |role: &&Role| {
        let name = role.context.split('/').next();
        name == Some(element) || name == Some("*")
    };
    roles.iter().find(is_of).copied()
}

/// Whether an attribute is the handler of an event.
pub(super) fn is_handler(attribute: &str) -> bool {
    attribute.len() > 4 && attribute.starts_with("on")
}
