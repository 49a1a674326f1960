//! Archive files that tests make: responses of HTTP at dates of their own, and bodies with an encoding.

use std::io::{self, Read};

use archive_formats::warc::{Builder, WarcType, WarcWriter};
use flate2::Compression;
use flate2::write::GzEncoder;

/// A captured response.
#[derive(Clone, Debug)]
pub struct Response<'a> {
    pub url: &'a str,
    /// The date of the capture, as in `2020-02-01T00:00:00Z`.
    pub date: &'a str,
    /// The head, without the line of the status, with `\r\n` behind every field.
    pub fields: &'a str,
    pub body: &'a [u8],
}

/// Returns an archive file of responses, each compressed alone.
pub fn warc(responses: &[Response<'_>]) -> Vec<u8> {
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    for (number, response) in responses.iter().enumerate() {
        let hash = blake3::hash(format!("{number} {}", response.url).as_bytes()).to_hex();
        let id = format!(
            "urn:uuid:{}-{}-4{}-8{}-{}",
            &hash[..8],
            &hash[8..12],
            &hash[12..15],
            &hash[15..18],
            &hash[18..30]
        );
        let mut block = format!(
            "HTTP/1.1 200 OK\r\n{}Content-Length: {}\r\n\r\n",
            response.fields,
            response.body.len()
        )
        .into_bytes();
        block.extend_from_slice(response.body);
        let record = Builder::new(WarcType::Response, &id, response.date)
            .target_uri(response.url)
            .content_type("application/http; msgtype=response");
        let length = block.len() as u64;
        let head = record.render_head(length).expect("a header");
        writer
            .write_record(&head, length, &mut block.as_slice())
            .expect("written");
    }
    writer.into_inner()
}

/// Encodes with gzip what comes, without holding it.
pub fn gzip(mut plain: impl Read) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    io::copy(&mut plain, &mut encoder).expect("encoded");
    encoder.finish().expect("an end")
}
