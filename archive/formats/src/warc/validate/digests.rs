//! The digests of a record, compared with its bytes.
//!
//! Owns which digests can be checked: those of a known algorithm, of the block in every record, of the payload where
//! the standard defines it and it lies in this record alone. Does not check the record that a revisit or a segment
//! refers to. Reads a block once, in pieces.

use std::io::{self, Read};

use super::{Author, Rule, RuleSeverity, Violation};
use crate::digest::{Digest, DigestValue, Hashers, InvalidDigest};
use crate::http::{MediaType, PayloadCheck, Tee, check_payload};
use crate::warc::header::Header;
use crate::warc::reader::Record;
use crate::warc::record::WarcType;

/// The longest head of an HTTP message that is read. The payload behind a longer one is not checked.
const HEAD_LIMIT: usize = 1 << 20;

/// A field with a digest, and its clause in both editions.
#[derive(Clone, Copy)]
struct DigestField {
    name: &'static str,
    clause: &'static str,
}

const BLOCK: DigestField = DigestField {
    name: "WARC-Block-Digest",
    clause: "5.8",
};
const PAYLOAD: DigestField = DigestField {
    name: "WARC-Payload-Digest",
    clause: "5.9",
};

/// A wrong digest.
pub(super) struct DigestFault {
    clause: &'static str,
    words: String,
}

impl DigestFault {
    fn new(field: DigestField, words: &str) -> Self {
        Self {
            clause: field.clause,
            words: format!("{}: {words}", field.name),
        }
    }

    pub(super) fn violation_by(self, author: &Author) -> Violation {
        author.violation(Rule::Digest, RuleSeverity::Error, self.clause, self.words)
    }
}

/// The kind of the payload of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Payload {
    /// The body of an HTTP message.
    Body,
    /// The whole block.
    Block,
}

/// Reads the block to its end if a digest can be checked, and returns the wrong digests.
pub(super) fn read_digests<R: Read>(
    record: &mut Record<'_, R>,
    header: &Header,
) -> io::Result<Vec<DigestFault>> {
    let mut wrong = Vec::new();
    let block = declared_digest(header, BLOCK, &mut wrong);
    let payload = payload(record.kind(), header)
        .and_then(|payload| Some((payload, declared_digest(header, PAYLOAD, &mut wrong)?)));
    let (body, whole) = match payload {
        Some((Payload::Body, digest)) => (Some(digest), None),
        Some((Payload::Block, digest)) => (None, Some(digest)),
        None => (None, None),
    };
    let of_block = [(BLOCK, block), (PAYLOAD, whole)];
    let algorithms = of_block
        .iter()
        .filter_map(|(_, declared)| declared.as_ref()?.algorithm());
    let mut block = Tee {
        input: record,
        hashers: Hashers::new(algorithms),
    };
    if let Some(digest) = &body
        && let PayloadCheck::Differs { stored, entity } =
            check_payload(&mut block, digest, HEAD_LIMIT)?
    {
        let found = match entity {
            Some(entity) if entity != stored => format!("{entity}, or with its chunks {stored}"),
            _ => stored.to_string(),
        };
        wrong.push(differs(PAYLOAD, digest, &found));
    }
    io::copy(&mut block, &mut io::sink())?;
    let found = block.hashers.finish();
    for (field, declared) in of_block {
        let is = |value: &&DigestValue| {
            declared.as_ref().and_then(Digest::algorithm) == Some(value.algorithm())
        };
        if let (Some(declared), Some(found)) = (&declared, found.iter().find(is))
            && declared.value() != Some(found)
        {
            wrong.push(differs(field, declared, &found.to_string()));
        }
    }
    Ok(wrong)
}

fn differs(field: DigestField, declared: &Digest, found: &str) -> DigestFault {
    let declared = declared
        .value()
        .map(DigestValue::to_string)
        .unwrap_or_default();
    let words = format!("the header says {declared}, the bytes have {found}");
    DigestFault::new(field, &words)
}

/// Returns the digest of a field, if it can be checked.
fn declared_digest(
    header: &Header,
    field: DigestField,
    wrong: &mut Vec<DigestFault>,
) -> Option<Digest> {
    match header.text_of(field.name)?.parse::<Digest>() {
        Ok(digest) => digest.value().is_some().then_some(digest),
        // No digest of this algorithm is written so.
        Err(error @ InvalidDigest::Value(_)) => {
            wrong.push(DigestFault::new(field, &error.to_string()));
            None
        }
        Err(InvalidDigest::NoAlgorithm | InvalidDigest::NoValue) => None,
    }
}

/// Returns the kind of the payload of a record, if it is defined and lies in its block as a whole.
fn payload(kind: WarcType, header: &Header) -> Option<Payload> {
    let is_there = |name| header.get(name).is_some();
    if is_there("WARC-Segment-Number") {
        return None;
    }
    match kind {
        WarcType::Resource | WarcType::Conversion => Some(Payload::Block),
        WarcType::Response | WarcType::Request => {
            let media = header.get("Content-Type");
            let media = media.and_then(|value| MediaType::read_media(&value));
            // Where chunks are cut, it is not known which of them a digest is of.
            let is_message = media.is_some_and(|media| media.essence == "application/http");
            (is_message && !is_there("WARC-Truncated")).then_some(Payload::Body)
        }
        _ => None,
    }
}
