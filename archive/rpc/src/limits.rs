//! Limits of time and amount, for both ends of a connection. Nothing waits without end.

use std::num::NonZeroUsize;
use std::time::Duration;

/// The number of calls that one caller may have under way, unless the settings say otherwise.
pub const CALLS_PER_CALLER: NonZeroUsize = NonZeroUsize::new(128).unwrap();

/// The largest message that a client at the edge of the archive reads, in bytes.
pub const LARGEST_MESSAGE: usize = 8 << 20;

/// The limits of a server or a channel. Both ends read the first five and `given_up`; the others are a server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpcLimits {
    /// The HTTP/2 receive window of a stream, in bytes. 2 MiB: uploads are five times faster than with the default.
    pub stream_window: u32,
    /// The HTTP/2 receive window of a connection, in bytes. Over distance: at least bandwidth × round trip.
    pub connection_window: u32,
    /// The pause between two keep-alive pings.
    pub keep_alive: Duration,
    /// The time after which a ping without an answer ends the connection.
    pub keep_alive_timeout: Duration,
    /// The longest time from the TCP connection to the first word of HTTP/2.
    pub handshake: Duration,
    /// The most handshakes under way at once. One more, and the oldest is dropped.
    pub handshakes: usize,
    /// The most connections at once, after their handshake.
    pub connections: usize,
    /// The most calls at once on a connection.
    pub streams: u32,
    /// The most calls on a connection that may be cancelled before they were begun: beyond that the connection is
    /// closed, with all other calls on it (CVE-2023-44487). A part of the archive cancels many at once, when its own
    /// callers go.
    pub given_up: usize,
    /// The most calls at once of a caller, over all connections.
    pub calls_per_caller: usize,
    /// The time after which a certificate that was valid when the connection began is checked again, so that one that
    /// has ended or was revoked does not live on in an open connection.
    pub recheck: Duration,
    /// The time from the request to stop until calls still under way are cut.
    pub drain: Duration,
}

impl RpcLimits {
    /// Returns the limits changed for a connection of many messages that may be tiny and are read late.
    ///
    /// Our HTTP/2 library ends a connection on which many small frames wait to be read: each of less than 256 bytes
    /// counts as the bytes it lacks of them, and all together may be half the connection's window. Little may wait
    /// here.
    #[must_use]
    pub const fn with_small_messages(self) -> Self {
        Self {
            stream_window: 256 << 10,
            connection_window: 16 << 20,
            ..self
        }
    }
}

impl RpcLimits {
    /// Returns the limits changed for a connection whose streams are read at different paces, as one that carries the
    /// bytes of many callers: a few unread streams would fill the connection's window, and nothing else could be
    /// answered on it. The bytes that wait are bounded by the windows of the streams.
    #[must_use]
    pub const fn with_independent_streams(self) -> Self {
        Self {
            connection_window: 1 << 30,
            ..self
        }
    }
}

// Frames stay at HTTP/2's 16 KiB: a frame is a TLS record, and larger ones measured erratic.
impl Default for RpcLimits {
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
