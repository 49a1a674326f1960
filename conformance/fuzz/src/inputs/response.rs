//! Responses as they arrive: where they end, however the connection cuts their bytes.

use std::io::Read as _;

use archive_formats::http::{Body, Head, ResponseEnding, ResponseFramer, ResponsePart};

const HEAD_LIMIT: usize = 1 << 12;

/// A response as the framer reads it.
#[derive(Debug, PartialEq, Eq)]
struct FramedResponse {
    /// The bytes of interim responses, and of line ends before them and before the response.
    before: usize,
    head: Vec<u8>,
    payload: Vec<u8>,
    damaged: usize,
    ending: ResponseEnding,
    taken: usize,
}

/// Responses of every framing, good and as bad servers send them.
pub(super) fn response_seeds() -> Vec<Vec<u8>> {
    [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: v\r\n\r\nHTTP",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.0 304 Not Modified\n\nHTTP",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno chunks",
        "\r\n\nHTTP/1.1 100 Continue\r\n\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "ICY 200 OK\r\nicy-name: x\r\n\r\nmusic",
        "<html>no status line at all",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// The end does not hang on how the bytes are cut, and the payload is what a reader of the stored response finds.
pub(super) fn response(input: &[u8]) {
    // The last byte says how all of them are cut.
    let size = usize::from(input.last().copied().unwrap_or(0) % 7) + 1;
    let whole = framed(input, input.len().max(1));
    assert_eq!(framed(input, size), whole, "pieces of {size} bytes");
    assert!(whole.taken <= input.len());
    if !matches!(
        whole.ending,
        ResponseEnding::Complete | ResponseEnding::NoEndOfTrailers | ResponseEnding::Unframed
    ) {
        return;
    }
    let stored = &input[whole.before..whole.taken];
    let mut rest = stored;
    let head = Head::read_head(&mut rest, HEAD_LIMIT + 1).unwrap();
    if whole.head.is_empty() || matches!(head.status(), Some(204 | 304)) {
        return;
    }
    let mut payload = Vec::new();
    Body::entity_body(&head, rest)
        .read_to_end(&mut payload)
        .unwrap();
    assert_eq!(whole.payload, payload);
}

fn framed(input: &[u8], size: usize) -> FramedResponse {
    let mut framer = ResponseFramer::new(false, HEAD_LIMIT);
    let mut payload = Vec::new();
    let mut damaged = 0;
    let mut taken = 0;
    for piece in input.chunks(size) {
        let mut rest = piece;
        while !rest.is_empty() && !framer.is_done() {
            let (count, part) = framer.push(rest);
            let (bytes, behind) = rest.split_at(count);
            assert!(count > 0 || framer.is_done(), "no progress");
            match part {
                ResponsePart::Payload => payload.extend_from_slice(bytes),
                ResponsePart::Unframed => payload = framer.unframed().to_vec(),
                ResponsePart::Damaged => damaged += count,
                ResponsePart::Head | ResponsePart::Framing => {}
            }
            taken += count;
            rest = behind;
        }
    }
    if framer.ending() == ResponseEnding::Unframed {
        payload = framer.unframed().to_vec();
    }
    FramedResponse {
        before: framer.interim().iter().map(Vec::len).sum::<usize>() + framer.line_ends_before(),
        head: framer.raw_head().to_vec(),
        payload,
        damaged,
        ending: framer.ending(),
        taken,
    }
}
