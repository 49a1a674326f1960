//! Replay decided: who sees what, what a request asks for, which capture is shown, and what it looks like on the wire.
//!
//! Owns the decisions of a viewer, and nothing that waits: no socket, no disk, no clock, no runtime. A shell looks captures up
//! and reads records; what it found goes in here, and what it does next comes out.
//!
//! | Module | Decides |
//! |---|---|
//! | [`access`] | whether this visitor may see this capture, or a whole file |
//! | [`cdx_server`] | the question that a CDX client asks, and the answer in its dialect |

pub mod access;
pub mod cdx_server;
