//! The sections of an order: each key with its type, its default and its meaning, said once.
//!
//! Owns the macros that make of such a list a type, its `Default`, and the comments of the documented file.

/// The keys of a section with the lines of their comments, in the order of the file.
pub(crate) type Keys = &'static [(&'static str, &'static [&'static str])];

/// A section that is written with a comment at each of its keys.
pub(crate) trait DocumentedSection {
    /// The lines of the comment of the section.
    const ABOUT: &'static [&'static str];
    /// The keys of the section.
    const KEYS: Keys;
}

/// Declares a section of which every key has a default.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        $name:ident {
            $(
                $(#[doc = $comment:literal])*
                $(#[serde($($serde:tt)*)])?
                $key:ident: $type:ty = $default:expr,
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $(
                $(#[doc = $comment])*
                $(#[serde($($serde)*)])?
                pub $key: $type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        $crate::order::section::documented! {
            $name [$($about)*] { $($key [$($comment)*])* }
        }
    };
}

/// Declares a section that may stand several times, and of which keys without `Option` have to be given.
macro_rules! entry {
    (
        $(#[doc = $about:literal])*
        $name:ident {
            $(
                $(#[doc = $comment:literal])*
                $(#[serde($($serde:tt)*)])?
                $key:ident: $type:ty,
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[doc = $comment])*
                $(#[serde($($serde)*)])?
                pub $key: $type,
            )*
        }

        $crate::order::section::documented! {
            $name [$($about)*] { $($key [$($comment)*])* }
        }
    };
}

/// Implements [`DocumentedSection`] with the comments of a type and of its keys.
macro_rules! documented {
    ($name:ident [$($about:literal)*] { $($key:ident [$($comment:literal)*])* }) => {
        impl $crate::order::section::DocumentedSection for $name {
            const ABOUT: &'static [&'static str] = &[$($about),*];
            const KEYS: $crate::order::section::Keys =
                &[$((stringify!($key), &[$($comment),*])),*];
        }
    };
}

pub(crate) use {documented, entry, section};
