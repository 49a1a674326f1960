//! Responses of every framing, whole, cut and beyond a limit.

use archive_formats::digest::digest_bytes;

use super::*;

fn receive(wire: &[u8], limits: ReceiveLimits, timed_out: bool) -> (HttpResponse, Vec<u8>, usize) {
    let mut receiver = ResponseReceiver::new(false, limits, std::env::temp_dir());
    let taken = receiver.take_bytes(wire).unwrap();
    let mut response = receiver
        .finish_response(timed_out.then_some(Truncation::Time))
        .unwrap();
    let mut block = Vec::new();
    response.block.read_to_end(&mut block).unwrap();
    assert_eq!(response.block_length, block.len() as u64);
    assert_eq!(response.block_digest, digest_bytes(Algorithm::Sha1, &block));
    (response, block, taken)
}

/// Fails if the block is another than what came over the wire, or the digest is of another payload.
#[test]
fn block_is_the_wire_and_payload_the_body() {
    let ok = "HTTP/1.1 200 OK\r\n";
    for (wire, payload, reusable) in [
        (format!("{ok}Content-Length: 5\r\n\r\nhello"), "hello", true),
        (
            format!("{ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            "hello",
            true,
        ),
        (format!("{ok}\r\nhello"), "hello", false),
        ("<html>hello".to_owned(), "<html>hello", false),
        (
            format!("{ok}Transfer-Encoding: chunked\r\n\r\nhello\nworld"),
            "hello\nworld",
            false,
        ),
        (
            format!("{ok}Transfer-Encoding: chunked\r\n\r\nhello"),
            "hello",
            false,
        ),
        (
            format!("{ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX0"),
            "5\r\nhelloX0",
            false,
        ),
        (
            format!("{ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhel"),
            "5\r\nhel",
            false,
        ),
    ] {
        let (response, block, taken) = receive(wire.as_bytes(), ReceiveLimits::default(), false);
        assert_eq!(
            (block.as_slice(), taken),
            (wire.as_bytes(), wire.len()),
            "{wire:?}"
        );
        assert_eq!(
            response.payload_digest,
            digest_bytes(Algorithm::Sha1, payload.as_bytes()),
            "{wire:?}"
        );
        assert_eq!(response.payload_length, payload.len() as u64);
        assert_eq!(response.is_reusable, reusable, "{wire:?}");
    }
}

/// Fails if bytes of the next response get into the block, or an interim response does.
#[test]
fn block_ends_where_the_response_does() {
    let wire = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK";
    let (response, block, taken) = receive(wire, ReceiveLimits::default(), false);
    assert_eq!(block, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!((taken, response.interim.len()), (wire.len() - 15, 1));
}

/// Fails if a cut response passes for a whole one, or the wrong reason is given.
#[test]
fn cut_response_says_why() {
    let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    let limit = |body| ReceiveLimits {
        body: Some(body),
        ..ReceiveLimits::default()
    };
    let short = ReceiveLimits {
        head: 20,
        ..ReceiveLimits::default()
    };
    for (wire, limits, timed_out, truncation, length) in [
        (
            &wire[..],
            ReceiveLimits::default(),
            false,
            Some(Truncation::Disconnect),
            wire.len(),
        ),
        (
            &wire[..],
            ReceiveLimits::default(),
            true,
            Some(Truncation::Time),
            wire.len(),
        ),
        (
            &wire[..],
            limit(3),
            false,
            Some(Truncation::Length),
            wire.len() - 2,
        ),
        (&wire[..], short, false, Some(Truncation::Length), 20),
        (
            &wire[..30],
            ReceiveLimits::default(),
            false,
            Some(Truncation::Disconnect),
            30,
        ),
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"[..],
            limit(3),
            false,
            None,
            41,
        ),
    ] {
        let (response, block, _) = receive(wire, limits.clone(), timed_out);
        assert_eq!(
            (response.truncation, block.len()),
            (truncation, length),
            "{limits:?}"
        );
        assert_eq!(response.is_reusable, truncation.is_none());
        assert!(wire.starts_with(&block));
    }
}

/// Fails if a large block stays in memory, or changes on its way to the disk.
#[test]
fn large_block_goes_to_the_disk() {
    let mut wire = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    wire.resize(IN_MEMORY * 3, b'x');
    let mut receiver = ResponseReceiver::new(false, ReceiveLimits::default(), std::env::temp_dir());
    for piece in wire.chunks(10_000) {
        assert_eq!(receiver.take_bytes(piece).unwrap(), piece.len());
    }
    assert!(receiver.block.is_rolled());
    let mut response = receiver.finish_response(None).unwrap();
    let mut block = Vec::new();
    response.block.read_to_end(&mut block).unwrap();
    assert!(block == wire);
}
