//! The ends of responses, whatever servers send and however the bytes are cut.

use std::io::Read as _;

use super::*;
use crate::http::{Body, Head};

/// A response as the framer reads it.
#[derive(Debug, PartialEq, Eq)]
struct FramedResponse {
    head: Vec<u8>,
    interim: usize,
    /// The bytes of the response behind the head, framing included.
    body: Vec<u8>,
    /// `None` behind a damaged chunk.
    payload: Option<Vec<u8>>,
    ending: ResponseEnding,
    is_reusable: bool,
    /// The number of bytes that are left for the next response.
    left: usize,
}

/// Reads a response whose bytes come in the given pieces.
fn read<'a>(answers_head: bool, pieces: impl Iterator<Item = &'a [u8]>) -> FramedResponse {
    let mut framer = ResponseFramer::new(answers_head, 200);
    let mut body = Vec::new();
    let mut payload = Vec::new();
    let mut damaged = false;
    let mut left = 0;
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() && !framer.is_done() {
            let (count, part) = framer.push(rest);
            let (bytes, behind) = rest.split_at(count);
            assert!(count > 0 || framer.is_done(), "no progress on {rest:?}");
            if part == ResponsePart::Unframed && framer.head().is_none() {
                // The bytes before were returned as a head.
                body.clear();
                body.extend_from_slice(framer.unframed());
            } else if part != ResponsePart::Head {
                body.extend_from_slice(bytes);
            }
            match part {
                ResponsePart::Payload => payload.extend_from_slice(bytes),
                ResponsePart::Unframed => payload = framer.unframed().to_vec(),
                ResponsePart::Damaged => damaged = true,
                ResponsePart::Head | ResponsePart::Framing => {}
            }
            rest = behind;
        }
        left += rest.len();
    }
    if framer.ending() == ResponseEnding::Unframed {
        payload = framer.unframed().to_vec();
    }
    FramedResponse {
        head: framer.raw_head().to_vec(),
        interim: framer.interim().len(),
        body,
        payload: (!damaged).then_some(payload),
        ending: framer.ending(),
        is_reusable: framer.is_reusable(),
        left,
    }
}

/// Reads it whole, byte by byte and cut in two at each place: the result is one.
fn read_all_ways(answers_head: bool, wire: &[u8]) -> FramedResponse {
    let whole = read(answers_head, [wire].into_iter());
    assert_eq!(read(answers_head, wire.chunks(1)), whole, "byte by byte");
    for cut in 0..wire.len() {
        let (first, second) = wire.split_at(cut);
        assert_eq!(
            read(answers_head, [first, second].into_iter()),
            whole,
            "cut at {cut}: {}",
            String::from_utf8_lossy(wire)
        );
    }
    whole
}

fn wire(head: &str, body: &str) -> Vec<u8> {
    format!("{head}\r\n\r\n{body}").into_bytes()
}

/// Fails if a body ends at another byte than its framing says.
#[test]
fn framing_says_where_a_response_ends() {
    let check = |head: &str, behind: &str, payload: &str, left: usize, reusable: bool| {
        let reading = read_all_ways(false, &wire(head, behind));
        assert_eq!(
            (
                reading.payload.as_deref(),
                reading.ending,
                reading.left,
                reading.is_reusable
            ),
            (
                Some(payload.as_bytes()),
                ResponseEnding::Complete,
                left,
                reusable
            ),
            "{head}"
        );
        assert_eq!(reading.head, wire(head, ""));
        assert_eq!(reading.body.len() + left, behind.len());
    };
    let ok = "HTTP/1.1 200 OK";
    check(
        &format!("{ok}\r\nContent-Length: 3"),
        "abcHTTP",
        "abc",
        4,
        true,
    );
    check(&format!("{ok}\r\nContent-Length: 0"), "", "", 0, true);
    check(
        &format!("{ok}\r\nContent-Length: 3, 3"),
        "abcd",
        "abc",
        1,
        true,
    );
    check(
        &format!("{ok}\r\nContent-Length: 3\r\nConnection: Close"),
        "abc",
        "abc",
        0,
        false,
    );
    check(
        "HTTP/1.0 200 OK\r\nContent-Length: 3",
        "abc",
        "abc",
        0,
        false,
    );
    check(
        "HTTP/1.0 200\r\nContent-Length: 3\r\nConnection: keep-alive",
        "abc",
        "abc",
        0,
        true,
    );
    check(ok, "abc", "abc", 0, false);
    check("ICY 200 OK", "abc", "abc", 0, false);
    check(
        "http/1.1 200 OK\r\nContent-Length:3",
        "abc",
        "abc",
        0,
        false,
    );
    // Lengths that contradict each other, or are no numbers.
    check(
        &format!("{ok}\r\nContent-Length: 3\r\nContent-Length: 4"),
        "abcde",
        "abcde",
        0,
        false,
    );
    check(
        &format!("{ok}\r\nContent-Length: -1"),
        "abc",
        "abc",
        0,
        false,
    );
    check(
        &format!("{ok}\r\nContent-Length: 3\r\nTransfer-Encoding: identity"),
        "abc",
        "abc",
        0,
        true,
    );
    check(
        &format!("{ok}\r\nContent-Length: 3\r\nTransfer-Encoding: gzip"),
        "abcde",
        "abcde",
        0,
        false,
    );
    // Responses without a body.
    check(
        "HTTP/1.1 204 No Content\r\nContent-Length: 3",
        "abc",
        "",
        3,
        true,
    );
    check(
        "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked",
        "abc",
        "",
        3,
        true,
    );
    // Chunked bodies.
    let chunked = format!("{ok}\r\nContent-Length: 9\r\nTransfer-Encoding: Chunked");
    check(
        &chunked,
        "3\r\nabc\r\n2;x=y\nde\n0\r\n\r\nHTTP",
        "abcde",
        4,
        true,
    );
    check(&chunked, "0\r\nX: y\r\n\r\n", "", 0, true);
    check(&chunked, "<p>3\r\nabc", "<p>3\r\nabc", 0, false);
}

/// Fails if a response to `HEAD` waits for a body that never comes.
#[test]
fn head_requests_have_no_body() {
    let reading = read_all_ways(true, &wire("HTTP/1.1 200 OK\r\nContent-Length: 3", "HTTP"));
    assert_eq!(
        (reading.ending, reading.left),
        (ResponseEnding::Complete, 4)
    );
    assert!(reading.is_reusable);
}

/// Fails if a cut connection is taken for the end of the response.
#[test]
fn cut_response_is_distinguished_from_complete_one() {
    let check = |wire: &[u8], ending| assert_eq!(read_all_ways(false, wire).ending, ending);
    let chunked = |body| wire("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", body);
    check(b"", ResponseEnding::Nothing);
    check(b"HT", ResponseEnding::CutHead);
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
        ResponseEnding::CutHead,
    );
    check(b"HTTP/1.1 103 Early\r\n\r\n", ResponseEnding::CutHead);
    check(
        &wire("HTTP/1.1 200 OK\r\nContent-Length: 30", "abc"),
        ResponseEnding::CutBody { missing: 27 },
    );
    check(&chunked(""), ResponseEnding::CutChunks);
    check(&chunked("3"), ResponseEnding::Unframed);
    check(&chunked("3\r\nab"), ResponseEnding::CutChunks);
    check(&chunked("3\r\nabc\r\n"), ResponseEnding::CutChunks);
    check(
        &chunked("3\r\nabc\r\n0\r\n"),
        ResponseEnding::NoEndOfTrailers,
    );
    check(&chunked("3\r\nabcd\r\n0\r\n\r\n"), ResponseEnding::BadChunk);
    check(&chunked("3\r\nabc\r\n-1\r\n"), ResponseEnding::BadChunk);
}

/// Fails if bytes of a response without a status line are lost or taken for a head.
#[test]
fn response_without_status_line_is_body() {
    for body in [
        "<html>hello",
        "HTML\r\n\r\nx",
        "\r\nHTML/1.1 200 OK\r\n\r\n",
        "I",
    ] {
        let reading = read_all_ways(false, body.as_bytes());
        if body == "I" {
            assert_eq!(
                (reading.head.as_slice(), reading.ending),
                (&b"I"[..], ResponseEnding::CutHead)
            );
            continue;
        }
        assert_eq!(reading.ending, ResponseEnding::Complete);
        assert_eq!(
            (reading.head.as_slice(), reading.body.as_slice()),
            (&b""[..], body.as_bytes())
        );
        assert_eq!(reading.payload.as_deref(), Some(body.as_bytes()));
    }
}

/// Fails if an interim response ends the exchange, or becomes a part of the final one.
#[test]
fn interim_responses_are_kept_apart() {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let reading = read_all_ways(false, format!("{early}{last}").as_bytes());
    assert_eq!((reading.interim, reading.body.as_slice()), (2, &b"abc"[..]));
    assert!(reading.head.starts_with(b"HTTP/1.1 200 OK"));
    let endless = "HTTP/1.1 100 Continue\r\n\r\n".repeat(MOST_INTERIM + 2);
    assert_eq!(
        read_all_ways(false, endless.as_bytes()).ending,
        ResponseEnding::HeadTooLong
    );
    let switch = read_all_ways(false, b"HTTP/1.1 101 Switching Protocols\r\n\r\nabc");
    assert_eq!(
        (switch.ending, switch.is_reusable),
        (ResponseEnding::Complete, false)
    );
}

/// Fails if a head of any length is taken into memory.
#[test]
fn head_beyond_its_limit_is_cut() {
    for long in [
        format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\nbody", "y".repeat(300)),
        format!("HTTP/1.1 200 OK\r\n{}\r\nbody", "X: y\r\n".repeat(60)),
        format!("HTTP/1.1 200 {}", "y".repeat(300)),
    ] {
        let reading = read_all_ways(false, long.as_bytes());
        assert_eq!(
            (reading.ending, reading.head.len()),
            (ResponseEnding::HeadTooLong, 200)
        );
        assert_eq!(reading.body, b"");
        assert!(long.as_bytes().starts_with(&reading.head));
    }
}

/// Fails if the framer and the reader of stored responses disagree about what is payload.
#[test]
fn payload_is_what_readers_of_records_find() {
    let heads = [
        "",
        "\r\nTransfer-Encoding: chunked",
        "\r\nContent-Length: 5",
    ];
    let bodies = [
        "",
        "abc",
        "abcde",
        "0",
        "0\r\n\r\n",
        "5\r\nabcde\r\n0\r\n\r\n",
        "5\nabcde\n0\n",
        "3 ;x\r\nabc\r\n00\r\nT: v\r\n\r\n",
        "g\r\nabc",
        "5\r\nab",
        "5\r\nabcdef",
    ];
    for head in heads {
        for body in bodies {
            let wire = wire(&format!("HTTP/1.1 200 OK{head}"), body);
            let reading = read_all_ways(false, &wire);
            let stored = [reading.head, reading.body].concat();
            let mut input = stored.as_slice();
            let parsed = Head::read_head(&mut input, 1 << 16).unwrap();
            let mut payload = Vec::new();
            let complete = Body::entity_body(&parsed, input)
                .read_to_end(&mut payload)
                .is_ok();
            if complete {
                assert_eq!(reading.payload.as_ref(), Some(&payload), "{head} {body:?}");
            } else {
                assert!(
                    matches!(
                        reading.ending,
                        ResponseEnding::CutChunks | ResponseEnding::BadChunk
                    ),
                    "{head} {body:?}"
                );
            }
        }
    }
}
