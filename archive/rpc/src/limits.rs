//! Limits of time and amount, for both ends of a connection. Nothing waits without end.

use std::num::NonZeroUsize;
use std::time::Duration;

/// The number of calls that one caller may have under way, unless the settings say otherwise.
pub const CALLS_PER_CALLER: NonZeroUsize = NonZeroUsize::new(128).unwrap();

/// The limits of a server or a channel. Both ends read the first five; the others are a server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// HTTP/2 receive window of one stream, in bytes. 2 MiB: uploads are five times faster than with the default.
    pub stream_window: u32,
    /// HTTP/2 receive window of one connection, in bytes. Over distance: at least bandwidth × round trip.
    pub connection_window: u32,
    /// Pause between two keep-alive pings.
    pub keep_alive: Duration,
    /// A ping without an answer for this long ends the connection.
    pub keep_alive_timeout: Duration,
    /// From the TCP connection to the first word of HTTP/2.
    pub handshake: Duration,
    /// Handshakes under way at once. One more, and the oldest is given up.
    pub handshakes: usize,
    /// Connections at once, after their handshake.
    pub connections: usize,
    /// Calls at once on one connection.
    pub streams: u32,
    /// Calls on one connection that are given up before they were begun: beyond that the connection is closed, with all
    /// other calls on it (CVE-2023-44487). A part of the archive gives up many at once, where its own callers go.
    pub given_up: usize,
    /// Calls at once of one caller, over all connections.
    pub calls_per_caller: usize,
    /// A certificate that was valid when the connection began is looked at again after this long, so that one that
    /// ends or was revoked since does not live on in an open connection.
    pub recheck: Duration,
    /// From the request to stop until calls still under way are cut.
    pub drain: Duration,
}

impl Limits {
    /// The same, for a connection of many messages that may be tiny and are read late.
    ///
    /// HTTP/2 as we have it ends a connection on which many small frames wait to be read: each of less than 256 bytes
    /// counts as what it lacks of them, and all together may be half the connection's window. Little may wait here.
    #[must_use]
    pub const fn with_small_messages(self) -> Self {
        Self {
            stream_window: 256 << 10,
            connection_window: 16 << 20,
            ..self
        }
    }
}

impl Limits {
    /// The same, for a connection whose streams are read at different paces, as one on which many callers' bytes pass: a
    /// few that nobody reads would fill the connection's window, and nothing else could be answered on it. What waits is
    /// bounded by the windows of the streams.
    #[must_use]
    pub const fn with_independent_streams(self) -> Self {
        Self {
            connection_window: 1 << 30,
            ..self
        }
    }
}

// Frames stay at HTTP/2's 16 KiB: it is a TLS record, and larger ones measured erratic.
impl Default for Limits {
    fn default() -> Self {
        Self {
            stream_window: 2 << 20,
            connection_window: 4 << 20,
            keep_alive: Duration::from_secs(20),
            keep_alive_timeout: Duration::from_secs(20),
            handshake: Duration::from_secs(10),
            handshakes: 256,
            connections: 1024,
            streams: 256,
            given_up: 4096,
            calls_per_caller: CALLS_PER_CALLER.get(),
            recheck: Duration::from_mins(5),
            drain: Duration::from_secs(30),
        }
    }
}
