//! Writes an archive file of pages that were never published: the same bytes at every run, and much like a crawl.
//!
//! `cargo run --release -p archive-formats --example pages -- PAGES FILE [SEED]` writes for each page a request, a
//! response and metadata, a member each: nine of ten pages are HTML of 2 to 80 KiB in words of uneven frequency, the
//! others noise.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use archive_formats::digest::{Algorithm, digest_bytes};
use archive_formats::warc::{Builder, WarcType, WarcWriter};

const DATE: &str = "2026-11-21T19:14:09Z";

/// A generator of numbers, which are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below.max(1)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(pages), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("say how many pages, and where they go".into());
    };
    let file = BufWriter::new(File::create_new(path)?);
    let mut writer = WarcWriter::gzip_writer(file, 6);
    let info = Builder::new(WarcType::Warcinfo, "urn:uuid:0", DATE);
    put(
        &mut writer,
        &info.content_type("application/warc-fields"),
        b"software: pages\r\n",
    )?;
    let seed: u64 = arguments.next().map_or(Ok(0), |seed| seed.parse())?;
    let mut dice = Dice(0x5eed_0000_0000_0001 + (seed << 20));
    for number in 0..pages.parse()? {
        exchange(&mut writer, &mut dice, number)?;
    }
    writer.into_inner().flush()?;
    Ok(())
}

fn put<W: Write>(
    writer: &mut WarcWriter<W>,
    record: &Builder,
    mut block: &[u8],
) -> Result<(), Box<dyn std::error::Error>> {
    let length = u64::try_from(block.len())?;
    writer.write_record(&record.render_head(length)?, length, &mut block)?;
    Ok(())
}

fn exchange<W: Write>(
    writer: &mut WarcWriter<W>,
    dice: &mut Dice,
    number: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let host = format!("www{}.example{}.org", number % 3, dice.roll(400));
    let path = format!(
        "/section-{}/{number}.html?b={}&a=1",
        dice.roll(50),
        dice.roll(9)
    );
    let url = format!("http://{host}{path}");
    let id = |part: &str| format!("urn:uuid:{number:08x}-0000-4000-8000-{part:0>12}");
    let is_page = dice.roll(10) > 0;
    let body = if is_page {
        page(dice, &host)?
    } else {
        noise(dice)
    };
    let kind = if is_page {
        "text/html; charset=utf-8"
    } else {
        "image/jpeg"
    };
    let mut block = format!(
        "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 19:14:09 GMT\r\nServer: nginx\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\nConnection: close\r\nETag: \"{:x}\"\r\nCache-Control: max-age=3600\r\n\r\n",
        body.len(),
        dice.roll(u64::MAX)
    )
    .into_bytes();
    block.extend_from_slice(&body);
    let response = Builder::new(WarcType::Response, &id("1"), DATE)
        .target_uri(&url)
        .content_type("application/http; msgtype=response")
        .with_field("WARC-IP-Address", "192.0.2.1")
        .with_field(
            "WARC-Payload-Digest",
            &digest_bytes(Algorithm::Sha1, &body).to_string(),
        )
        .with_field(
            "WARC-Block-Digest",
            &digest_bytes(Algorithm::Sha1, &block).to_string(),
        );
    put(writer, &response, &block)?;
    let asked = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Mozilla/5.0 (compatible; pages)\r\nAccept: */*\r\n\r\n"
    );
    let request = Builder::new(WarcType::Request, &id("2"), DATE)
        .target_uri(&url)
        .content_type("application/http; msgtype=request")
        .concurrent_to(&id("1"));
    put(writer, &request, asked.as_bytes())?;
    let said = format!(
        "via: http://{host}/\r\nhopsFromSeed: L\r\nfetchTimeMs: {}\r\n",
        dice.roll(900)
    );
    let metadata = Builder::new(WarcType::Metadata, &id("3"), DATE)
        .target_uri(&url)
        .content_type("application/warc-fields")
        .concurrent_to(&id("1"));
    put(writer, &metadata, said.as_bytes())
}

/// Writes a word: words with smaller numbers come more often.
fn word(dice: &mut Dice, out: &mut Vec<u8>) {
    let number = dice.roll(4000) * dice.roll(4000) / 4000;
    let mut left = number * 7919 + 17;
    for _ in 0..=2 + number % 7 {
        let letter = usize::try_from(left % 22).expect("below the number of letters");
        out.push(b"etaoinshrdlcumwfgypbvk"[letter]);
        left = left / 3 + number;
    }
}

fn page(dice: &mut Dice, host: &str) -> io::Result<Vec<u8>> {
    let size = 2048 + usize::try_from(dice.roll(280) * dice.roll(280)).expect("below 280 * 280");
    let mut page = Vec::with_capacity(size + 500);
    page.extend_from_slice(b"<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>");
    word(dice, &mut page);
    page.extend_from_slice(b"</title></head>\n<body>\n");
    while page.len() < size {
        let at = dice.roll(10_000);
        write!(
            page,
            "<div class=\"entry\"><a href=\"http://{host}/section-{}/{at}.html\">",
            at % 50
        )?;
        word(dice, &mut page);
        page.extend_from_slice(b"</a>\n<p>");
        for _ in 0..20 + dice.roll(60) {
            word(dice, &mut page);
            page.push(b' ');
        }
        page.extend_from_slice(b"</p></div>\n");
    }
    page.extend_from_slice(b"</body></html>\n");
    Ok(page)
}

fn noise(dice: &mut Dice) -> Vec<u8> {
    (0..500 + dice.roll(6000))
        .flat_map(|_| dice.roll(u64::MAX).to_le_bytes())
        .collect()
}
