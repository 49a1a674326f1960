//! Requests that cannot be understood, and the words for it.

use archive_formats::date::InvalidDate;
use thiserror::Error;

use super::{InvalidTarget, Modifier};

/// A request that cannot be understood. The words are for the client.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidRequest {
    /// The path has another shape than all that are known.
    #[error("there is nothing at this path; captures are at /<collection>/<time>/<url>")]
    NoSuchPath,
    /// A name that no collection has.
    #[error("`{}` cannot be the name of a collection", .0.escape_debug())]
    Collection(String),
    /// A time that does not exist.
    #[error("`{}` is not a time: {reason}; write 1 to 14 digits, as in 20201231235959", .digits.escape_debug())]
    Time {
        /// The digits of the time.
        digits: String,
        /// The reason why there is no such time.
        reason: InvalidDate,
    },
    /// Letters behind a time that are no modifier.
    #[error("`{}` is not a modifier; use one of {}", .0.escape_debug(), Modifier::NAMES.join(", "))]
    Modifier(String),
    /// A form of TimeMaps that is not known.
    #[error("`{}` is not a form of TimeMaps; use link, json or cdxj", .0.escape_debug())]
    TimeMapFormat(String),
    /// A page that is not a number from 1 on.
    #[error("`{}` is not the number of a page; pages are counted from 1", .0.escape_debug())]
    Page(String),
    /// The URL of the request cannot be used.
    #[error("cannot use the URL of the request: {0}")]
    Target(#[from] InvalidTarget),
    /// A parameter that is missing, empty, or there twice with different values.
    #[error("the request needs one parameter `{0}`")]
    Parameter(&'static str),
    /// A parameter that has to be a number.
    #[error("parameter `{name}` must be a number, and is `{}`", .value.escape_debug())]
    Number {
        /// The name of the parameter.
        name: &'static str,
        /// The value of the parameter.
        value: String,
    },
}

impl InvalidRequest {
    /// Returns the status of the answer.
    pub const fn status(&self) -> u16 {
        match self {
            Self::NoSuchPath | Self::Collection(_) => 404,
            Self::Target(InvalidTarget::TooLong) => 414,
            _ => 400,
        }
    }
}
