//! Attributes of HTML and SVG that have references, and the hop of each.
//!
//! Attributes that mean something only together with others (`link`, `meta`, `base`, `form`, `script`) are read
//! elsewhere.

use harvest_policy::hops::Hop;

/// The form of the value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueForm {
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
pub(super) struct AttributeRole {
    /// The element, or `*`, and the attribute, as the context of a link names them.
    pub(super) context: &'static str,
    pub(super) form: ValueForm,
}

const fn link(context: &'static str) -> AttributeRole {
    role(context, ValueForm::Reference(Hop::Link))
}

const fn embed(context: &'static str) -> AttributeRole {
    role(context, ValueForm::Reference(Hop::Embed))
}

const fn role(context: &'static str, form: ValueForm) -> AttributeRole {
    AttributeRole { context, form }
}

/// The roles of attributes by their names.
const ROLES: [(&str, &[AttributeRole]); 43] = [
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
            role("img/@srcset", ValueForm::Candidates),
            role("source/@srcset", ValueForm::Candidates),
        ],
    ),
    (
        "imagesrcset",
        &[role("link/@imagesrcset", ValueForm::Candidates)],
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
    ("ping", &[role("*/@ping", ValueForm::References(Hop::Link))]),
    ("srcdoc", &[role("iframe/@srcdoc", ValueForm::Html)]),
    ("style", &[role("*/@style", ValueForm::Style)]),
    (
        "value",
        &[
            role("param/@value", ValueForm::Guess),
            role("option/@value", ValueForm::Guess),
            role("input/@value", ValueForm::Guess),
            role("button/@value", ValueForm::Guess),
        ],
    ),
    ("data-href", &[role("*/@data-href", ValueForm::Guess)]),
    ("data-url", &[role("*/@data-url", ValueForm::Guess)]),
    ("data-link", &[role("*/@data-link", ValueForm::Guess)]),
    ("data-src", &[role("*/@data-src", ValueForm::Lazy)]),
    ("data-lazy", &[role("*/@data-lazy", ValueForm::Lazy)]),
    (
        "data-lazy-src",
        &[role("*/@data-lazy-src", ValueForm::Lazy)],
    ),
    (
        "data-original",
        &[role("*/@data-original", ValueForm::Lazy)],
    ),
    (
        "data-original-src",
        &[role("*/@data-original-src", ValueForm::Lazy)],
    ),
    (
        "data-actualsrc",
        &[role("*/@data-actualsrc", ValueForm::Lazy)],
    ),
    ("data-echo", &[role("*/@data-echo", ValueForm::Lazy)]),
    ("data-image", &[role("*/@data-image", ValueForm::Lazy)]),
    ("data-img", &[role("*/@data-img", ValueForm::Lazy)]),
    ("data-thumb", &[role("*/@data-thumb", ValueForm::Lazy)]),
    ("data-poster", &[role("*/@data-poster", ValueForm::Lazy)]),
    ("data-bg", &[role("*/@data-bg", ValueForm::Lazy)]),
    (
        "data-background",
        &[role("*/@data-background", ValueForm::Lazy)],
    ),
    (
        "data-background-image",
        &[role("*/@data-background-image", ValueForm::Lazy)],
    ),
    (
        "data-full-src",
        &[role("*/@data-full-src", ValueForm::Lazy)],
    ),
    (
        "data-hi-res-src",
        &[role("*/@data-hi-res-src", ValueForm::Lazy)],
    ),
    (
        "data-large-file",
        &[role("*/@data-large-file", ValueForm::Lazy)],
    ),
    (
        "data-medium-file",
        &[role("*/@data-medium-file", ValueForm::Lazy)],
    ),
    (
        "data-srcset",
        &[role("*/@data-srcset", ValueForm::Candidates)],
    ),
    (
        "data-lazy-srcset",
        &[role("*/@data-lazy-srcset", ValueForm::Candidates)],
    ),
    (
        "data-bgset",
        &[role("*/@data-bgset", ValueForm::Candidates)],
    ),
];

/// Returns the role of an attribute of an element; both names are in small letters.
pub(super) fn role_of(element: &str, attribute: &str) -> Option<AttributeRole> {
    let (_, roles) = ROLES.iter().find(|(name, _)| *name == attribute)?;
    let is_of = |role: &&AttributeRole| {
        let name = role.context.split('/').next();
        name == Some(element) || name == Some("*")
    };
    roles.iter().find(is_of).copied()
}

/// Returns whether an attribute is the handler of an event.
pub(super) fn is_handler(attribute: &str) -> bool {
    attribute.len() > 4 && attribute.starts_with("on")
}
