//! Attributes of HTML and SVG: which have references, and which have to go.

use super::links::Purpose;

/// The meaning of an attribute of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The value of the attribute is a reference.
    Reference(Purpose),
    /// The value of the attribute is a `srcset`.
    Candidates,
    /// The value of the attribute is declarations of CSS.
    Style,
    /// The value of the attribute is a page.
    Page,
    /// The attribute connects to hosts, or stops what was rewritten from being loaded.
    Harmful,
    /// The attribute runs a script.
    Script,
}

impl Role {
    /// Returns whether the attribute has a part in navigation, so that it is rewritten even where a service worker
    /// catches what a page loads.
    pub(super) const fn is_navigation(self) -> bool {
        matches!(
            self,
            Self::Reference(Purpose::Link | Purpose::Frame) | Self::Page | Self::Harmful
        )
    }
}

/// Returns the role of an attribute of an element; `link`, `meta` and `base` are read elsewhere. Names are in small
/// letters.
pub(super) fn attribute_role(element: &str, attribute: &str) -> Option<Role> {
    use Purpose::{Frame, Image, Link, Media};
    let reference = |purpose| Some(Role::Reference(purpose));
    match attribute {
        "href" | "xlink:href" => match element {
            "a" | "area" => reference(Link),
            "script" => Some(Role::Script),
            _ => reference(Image),
        },
        "src" => match element {
            "iframe" | "frame" => reference(Frame),
            "img" | "input" | "image" => reference(Image),
            "script" => Some(Role::Script),
            _ => reference(Media),
        },
        "data" if element == "object" => reference(Media),
        "srcset" | "imagesrcset" => Some(Role::Candidates),
        "poster" | "background" | "lowsrc" | "dynsrc" => reference(Image),
        "action" | "formaction" | "cite" | "longdesc" => reference(Link),
        "srcdoc" => Some(Role::Page),
        "style" => Some(Role::Style),
        // A frame of another origin, or without the cookies of this one, would pass by the service worker.
        "sandbox" | "credentialless" if element == "iframe" => Some(Role::Harmful),
        "ping" | "manifest" | "integrity" | "nonce" | "attributionsrc" | "csp" => {
            Some(Role::Harmful)
        }
        "code" | "codebase" | "archive" | "classid" => {
            matches!(element, "applet" | "object" | "embed").then_some(Role::Script)
        }
        // Animations of SVG set attributes, links among them.
        "values" | "to" | "from" | "by" => {
            matches!(element, "set" | "animate").then_some(Role::Script)
        }
        name if name.starts_with("on") => Some(Role::Script),
        _ => None,
    }
}

/// The use of a `link` element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The element leads to a resource.
    To(Purpose),
    /// The element connects to a host before anybody asks; nothing stops that but taking it away.
    Connection,
    /// The element loads something for later, or for scripts.
    Preload,
}

/// Returns the use of a `link` element by its relations.
pub(super) fn link_relation(relations: &str) -> Relation {
    let relations = relations.to_ascii_lowercase();
    let has = |names: &[&str]| {
        relations
            .split_ascii_whitespace()
            .any(|name| names.contains(&name))
    };
    if has(&["preconnect", "dns-prefetch", "prerender", "expect"]) {
        Relation::Connection
    } else if has(&[
        "preload",
        "modulepreload",
        "prefetch",
        "manifest",
        "import",
        "serviceworker",
    ]) {
        Relation::Preload
    } else if has(&["stylesheet"]) {
        Relation::To(Purpose::Style)
    } else if relations.contains("icon") || has(&["image_src", "apple-touch-startup-image"]) {
        Relation::To(Purpose::Image)
    } else {
        Relation::To(Purpose::Link)
    }
}
