//! Replay decided: who sees what, what a request asks for, which capture is shown, and what it looks like on the wire.
//!
//! Owns the decisions of a viewer, and nothing that waits: no socket, no disk, no clock, no runtime. A shell looks
//! captures up and reads records; what it found goes in here, and what it does next comes out.
//!
//! The modules, in the order in which a request passes through them:
//!
//! | Module | Decides |
//! |---|---|
//! | [`request`] | what a path asks for, and the addresses that lead back |
//! | [`access`] | whether this visitor may see this capture, or a whole file |
//! | [`cdx_server`] | the question that a CDX client asks, and the answer in its dialect |
//! | [`busters`] | which parameters of a URL mean nothing |
//! | [`resolve`] | which capture is shown, and where its payload lies |
//! | [`memento`] | what RFC 7089 asks for: dates, TimeGates, TimeMaps, preferences |
//! | [`delivery`] | in which form a capture is given, by who asks for it |
//! | [`content`] | whether a document is a page, and as what it is shown |
//! | [`response`] | the head and the bytes of a raw answer, and what its digest is worth |
//! | [`rewrite`] | pages and style sheets whose references stay in the archive |
//! | [`banner`] | what a page without scripts says about itself |
//! | [`html`] | how words from outside stand on a small page |
//! | [`policy`] | what a browser may do with an answer |

#![warn(missing_docs)]

pub mod access;
pub mod banner;
pub mod busters;
pub mod cdx_server;
pub mod content;
pub mod delivery;
pub mod html;
pub mod memento;
pub mod policy;
pub mod request;
pub mod resolve;
pub mod response;
pub mod rewrite;
