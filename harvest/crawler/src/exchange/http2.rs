//! Exchanges by HTTP/2, which are written down as text of HTTP/1.1.
//!
//! Owns that text: `HTTP/1.1 200 ` and the fields in the order in which they came, those of one name together; the body
//! as it came. Records of such an exchange say so (`WARC-Protocol: h2`). One request at a time on a connection.
//! Trailers, interim responses and pushes are not taken. A head that is longer than allowed ends the exchange without a
//! response, because no part of it can be had.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::{Connection, SendRequest};

use super::ExchangeError;
use super::incoming::{ExchangeTimer, IncomingResponse};
use super::receive::ResponseReceiver;
use super::request::HttpRequest;
use super::wire::WireStream;

/// The bytes of a body that a host may send before they are taken.
const WINDOW: u32 = 1 << 20;

/// The length of the head of a frame.
pub(super) const FRAME_HEAD: usize = 9;

/// A connection that carries frames.
pub(super) struct FrameConnection {
    sender: SendRequest<Bytes>,
    driver: FrameDriver,
}

/// A driver that sends and receives the frames of a connection. It is driven only while somebody waits for a part of an
/// exchange.
struct FrameDriver {
    connection: Connection<Box<dyn WireStream>, Bytes>,
    is_over: bool,
}

impl FrameDriver {
    /// Waits for a part of an exchange while frames come and go. `None`: the connection has ended without it.
    async fn until<T>(&mut self, mut part: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        std::future::poll_fn(|context| {
            if let Poll::Ready(value) = part(context) {
                return Poll::Ready(Some(value));
            }
            if !self.is_over {
                if Pin::new(&mut self.connection).poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.is_over = true;
            }
            match part(context) {
                Poll::Ready(value) => Poll::Ready(Some(value)),
                Poll::Pending => Poll::Ready(None),
            }
        })
        .await
    }
}

impl FrameConnection {
    /// Begins to speak HTTP/2. `head_limit`: the most bytes of a head.
    ///
    /// # Errors
    ///
    /// [`h2::Error`] if the connection has ended.
    pub(super) async fn begin_frames(
        wire: Box<dyn WireStream>,
        head_limit: usize,
    ) -> Result<Self, h2::Error> {
        let mut builder = h2::client::Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_header_list_size(u32::try_from(head_limit).unwrap_or(u32::MAX));
        let (sender, connection) = builder.handshake(wire).await?;
        let driver = FrameDriver {
            connection,
            is_over: false,
        };
        Ok(Self { sender, driver })
    }

    /// Returns whether the connection can carry another request, as far as is known here.
    pub(super) async fn is_open(&mut self) -> bool {
        let driver = &mut self.driver;
        if !driver.is_over {
            let polled = std::future::poll_fn(|context| {
                Poll::Ready(Pin::new(&mut driver.connection).poll(context).is_ready())
            });
            driver.is_over = polled.await;
        }
        !driver.is_over
    }

    /// Sends a request and takes its response.
    pub(super) async fn exchange_request(
        &mut self,
        request: &HttpRequest,
        receiver: ResponseReceiver,
        timer: &ExchangeTimer<'_>,
    ) -> Result<IncomingResponse, ExchangeError> {
        let mut incoming = IncomingResponse::new(receiver, timer);
        let sender = &mut self.sender;
        let driver = &mut self.driver;
        let Some(ready) = timer
            .limit_time(driver.until(|context| sender.poll_ready(context)))
            .await
        else {
            return Ok(incoming.end_by_timeout());
        };
        if !matches!(ready, Some(Ok(()))) {
            return Ok(incoming.end_by_disconnect());
        }
        let mut head = first_argument(SendRequest::<Bytes>::send_request);
        let refused = || ExchangeError::NotHttp2(request.target().to_string());
        let target = request.target().as_str();
        *head.method_mut() = request.method().parse().ok().ok_or_else(refused)?;
        *head.uri_mut() = target.parse().ok().ok_or_else(refused)?;
        let mut fields = Vec::new();
        for (name, value) in request.fields() {
            let name = name.parse().ok().ok_or_else(refused)?;
            fields.push((name, value.parse().ok().ok_or_else(refused)?));
        }
        *head.headers_mut() = fields.into_iter().collect();
        let body = request.body();
        let Ok((mut response, mut upload)) = sender.send_request(head, body.is_empty()) else {
            return Ok(incoming.end_by_disconnect());
        };
        if !body.is_empty()
            && upload
                .send_data(Bytes::copy_from_slice(body), true)
                .is_err()
        {
            return Ok(incoming.end_by_disconnect());
        }
        let answer = driver.until(|context| Pin::new(&mut response).poll(context));
        let Some(answer) = timer.limit_time(answer).await else {
            return Ok(incoming.end_by_timeout());
        };
        let Some(Ok(answer)) = answer else {
            return Ok(incoming.end_by_disconnect());
        };
        let (answer, mut stream) = answer.into_parts();
        let fields = answer.headers.iter();
        let fields = fields.map(|(name, value)| (name.as_str(), value.as_bytes()));
        let text = head_text(answer.status.as_u16(), fields);
        incoming.take_head(&text, timer)?;
        while !incoming.is_done() {
            let part = driver.until(|context| stream.poll_data(context));
            let Some(part) = timer.limit_time(part).await else {
                return Ok(incoming.end_by_timeout());
            };
            match part {
                Some(Some(Ok(bytes))) => {
                    incoming.take_bytes(&bytes, timer)?;
                    timer.bandwidth.pace(bytes.len() as u64, timer.clock).await;
                    // Fails only for more bytes than have come.
                    drop(stream.flow_control().release_capacity(bytes.len()));
                }
                Some(None) => return Ok(incoming.end_complete()),
                Some(Some(Err(_))) | None => return Ok(incoming.end_by_disconnect()),
            }
        }
        Ok(incoming)
    }
}

/// Returns the first argument of a method, empty: the types of the crate `http` have no names here.
fn first_argument<S, A: Default, B, R>(_: fn(&mut S, A, B) -> R) -> A {
    A::default()
}

/// Returns the head of a response as text of HTTP/1.1. Neither names nor values have line ends: `h2` refuses such
/// heads.
fn head_text<'a>(status: u16, fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} \r\n").into_bytes();
    for (name, value) in fields {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text
}

/// Returns whether bytes are the head of the frame with which a server that speaks HTTP/2 begins (RFC 9113 §3.4).
pub(super) fn is_settings_frame(bytes: &[u8]) -> bool {
    let [high, middle, low, 4, flags, 0, 0, 0, 0] = bytes else {
        return false;
    };
    let length = u32::from_be_bytes([0, *high, *middle, *low]);
    *flags & 1 == 0 && length.is_multiple_of(6)
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "hosts of tests are nobody's tasks"
)]
mod tests;
