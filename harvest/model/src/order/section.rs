//! The sections of an order: each key with its type, its default and its meaning, said once.
//!
//! Owns the macros that make of such a list a type and its `Default`.

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
        #[derive(
            Clone,
            Debug,
            PartialEq,
            serde::Serialize,
            serde::Deserialize,
            documented::Documented,
            documented::DocumentedFields,
        )]
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
        #[derive(
            Clone,
            Debug,
            PartialEq,
            serde::Serialize,
            serde::Deserialize,
            documented::Documented,
            documented::DocumentedFields,
        )]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[doc = $comment])*
                $(#[serde($($serde)*)])?
                pub $key: $type,
            )*
        }
    };
}

pub(crate) use {entry, section};
