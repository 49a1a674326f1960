//! Measures an index on this machine: import, lookup, walk and size. Usage: `throughput DIRECTORY MILLIONS`.
//!
//! The captures are made up: ten of each URL, a thousand URLs of each host. Promises nothing about real ones.

use std::error::Error;
use std::io::{self, BufReader, Read, Write as _};
use std::path::Path;
use std::time::Instant;

use archive_formats::cdx::query::{CaptureQuery, KeyMatch, KeyRange};
use archive_formats::surt::UrlKey;
use index_captures::{Captures, OpenOptions};

const DIGEST: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Lines of CDX with 11 fields, without a file.
struct Lines {
    next: u64,
    end: u64,
    line: Vec<u8>,
    at: usize,
}

impl Lines {
    /// The URL of a number, scattered over the hosts.
    fn url(number: u64) -> String {
        let url = number / 10;
        let host = (url / 1000).wrapping_mul(2_654_435_761) % 1_000_003;
        format!(
            "http://www.host{host}.example.dk/path/{}/Page-{}.html?id={url}",
            url % 50,
            url % 1000
        )
    }

    fn fill(&mut self) -> io::Result<()> {
        self.line.clear();
        self.at = 0;
        let start = self.next;
        while self.next < self.end && self.next < start + 1000 {
            let n = self.next;
            let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let digest: String = (0..32)
                .map(|at| {
                    let letter = mixed.rotate_left(at * 5) % 32;
                    DIGEST
                        .chars()
                        .nth(usize::try_from(letter).unwrap_or(0))
                        .unwrap_or('A')
                })
                .collect();
            writeln!(
                self.line,
                "- 20{:02}{:02}{:02}{:02}{:02}{:02} {} text/html 200 {digest} - - {} {} job-{}-20200101.warc.gz",
                n % 10 + 10,
                mixed % 12 + 1,
                (mixed >> 8) % 28 + 1,
                (mixed >> 16) % 24,
                (mixed >> 24) % 60,
                (mixed >> 32) % 60,
                Self::url(n),
                mixed % 100_000,
                mixed % 1_000_000_000,
                n / 50_000,
            )?;
            self.next += 1;
        }
        Ok(())
    }
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() {
            self.fill()?;
        }
        let rest = self.line.get(self.at..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        let (to, from) = (buffer.get_mut(..count), rest.get(..count));
        if let (Some(to), Some(from)) = (to, from) {
            to.copy_from_slice(from);
        }
        self.at += count;
        Ok(count)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("a directory is missing")?;
    let millions: u64 = arguments
        .next()
        .ok_or("a number of millions is missing")?
        .parse()?;
    let end = millions * 1_000_000;
    let mut out = io::stdout();
    let captures = Captures::open(Path::new(&directory), &OpenOptions::default())?.captures;

    let lines = || Lines {
        next: 0,
        end,
        line: Vec::new(),
        at: 0,
    };
    let start = Instant::now();
    io::copy(&mut lines(), &mut io::sink())?;
    writeln!(out, "making lines: {:?}", start.elapsed())?;
    let start = Instant::now();
    let mut import = captures.import("measured")?;
    import.read("lines", BufReader::with_capacity(1 << 20, lines()))?;
    let report = import.complete()?;
    let seconds = start.elapsed().as_secs();
    writeln!(
        out,
        "import: {} lines, {} damaged, {seconds} s, {} lines/s",
        report.captures,
        report.damaged,
        report.captures / seconds.max(1)
    )?;

    let lookups: u64 = 200_000;
    for round in ["cold", "warm"] {
        let start = Instant::now();
        let mut found: u64 = 0;
        for number in 0..lookups {
            let number = number.wrapping_mul(7_919_777) % end;
            let key = UrlKey::of(Lines::url(number));
            for capture in captures.query(&CaptureQuery::new(KeyMatch::Exact(key)))? {
                capture?;
                found += 1;
            }
        }
        let nanos = start.elapsed().as_nanos() / u128::from(lookups);
        writeln!(
            out,
            "{round}: {found} captures in {lookups} lookups, {nanos} ns each"
        )?;
    }
    let start = Instant::now();
    let mut all: u64 = 0;
    for capture in captures.query(&CaptureQuery::new(KeyMatch::Within(KeyRange::all())))? {
        capture?;
        all += 1;
    }
    writeln!(out, "walk: {all} captures in {:?}", start.elapsed())?;
    Ok(())
}
