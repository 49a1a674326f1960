//! Measures an index of made-up captures on this machine, for `tools/bench captures`. Promises nothing about real ones.
//!
//! - `throughput lines COUNT` writes that many captures as CDXJ, sorted.
//! - `throughput targets COUNT LOOKUPS KIND` writes the targets of HTTP look-ups, without their collection. KIND is
//!   `exact`, `closest` or `prefix`.
//! - `throughput ingest DIRECTORY FILE` imports lines of CDX or CDXJ into an index.
//! - `throughput look-up DIRECTORY COUNT LOOKUPS` asks that index.
//! - `throughput search FILE COUNT LOOKUPS` searches the sorted lines by bisection instead.
//!
//! The captures: 35 of seven URLs, from one to fifteen each; a hundred URLs of each host; files of some 50,000
//! captures.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use archive_formats::cdx::query::{CaptureQuery, KeyMatch, MatchKind, Order};
use archive_formats::cdx::{Capture, Format};
use archive_formats::date::Stamp;
use archive_formats::surt::UrlKey;
use index_captures::{CaptureIndex, OpenOptions};

type Failure = Box<dyn Error>;

/// The numbers of captures that the URLs have, by turns.
const CAPTURES: [u64; 7] = [1, 1, 2, 3, 5, 8, 15];
/// The number of captures in one turn.
const ROUND: u64 = 35;
/// The number of URLs of a host.
const HOST: u64 = 100;

const SECTIONS: [&str; 5] = ["Artikel", "billeder", "js", "kalender", "nyheder"];
const NAMES: [&str; 6] = ["havn", "skole", "kommune", "avis", "museum", "by-og-land"];
const MEDIA: [&str; 5] = [
    "text/html",
    "image/jpeg",
    "text/html",
    "application/pdf",
    "text/css",
];
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut out = BufWriter::new(io::stdout());
    match arguments.as_slice() {
        ["lines", count] => lines(count.parse()?, &mut out)?,
        ["targets", count, lookups, kind] => {
            targets(count.parse()?, lookups.parse()?, kind, &mut out)?;
        }
        ["ingest", directory, file] => ingest(Path::new(directory), file, &mut out)?,
        ["look-up", directory, count, lookups] => {
            let directory = Path::new(directory);
            look_up(directory, count.parse()?, lookups.parse()?, &mut out)?;
        }
        ["search", file, count, lookups] => {
            search(file, count.parse()?, lookups.parse()?, &mut out)?;
        }
        _ => return Err("say what to measure: lines, targets, ingest, look-up or search".into()),
    }
    out.flush()?;
    Ok(())
}

const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn pick<T: Copy>(from: &[T], number: u64) -> T {
    let at = number % from.len() as u64;
    from[usize::try_from(at).expect("a remainder is less than the length")]
}

/// Returns the URL of a number. Keys of URLs sort as their numbers do.
fn url(number: u64) -> String {
    let host = number / HOST;
    let page = number % HOST;
    let mix = mixed(number);
    let section = pick(&SECTIONS, page / 20);
    let scheme = if host.is_multiple_of(3) {
        "https"
    } else {
        "http"
    };
    let www = if host.is_multiple_of(2) { "www." } else { "" };
    let name = pick(&NAMES, host);
    let query = if mix.is_multiple_of(4) {
        format!("?id={}&side={}", mix % 90_000, mix % 7)
    } else {
        String::new()
    };
    format!(
        "{scheme}://{www}h{host:07}-{name}.dk/{section}/{page:02}/{}-{:x}.html{query}",
        pick(&NAMES, mix >> 7),
        mix >> 40
    )
}

/// Returns how many URLs have that many captures.
const fn urls(count: u64) -> u64 {
    count / ROUND * 7
}

/// Returns a capture of a URL.
fn capture(count: u64, number: u64, nth: u64) -> Result<Capture, Failure> {
    let url = url(number);
    let mix = mixed(number ^ (nth << 40));
    // Of three captures one has what the one before it had.
    let digest = mixed(number ^ ((nth - u64::from(nth % 3 == 2)) << 41));
    let digest: String = (0..32)
        .map(|at| char::from(pick(BASE32, mixed(digest + at) >> 20)))
        .collect();
    let year = 2008 + nth;
    let stamp: Stamp = format!(
        "{year}{:02}{:02}{:02}{:02}{:02}",
        mix % 12 + 1,
        (mix >> 8) % 28 + 1,
        (mix >> 16) % 24,
        (mix >> 24) % 60,
        (mix >> 32) % 60,
    )
    .parse()?;
    let file = (mix >> 13) % (count / ROUND / 1400 + 1);
    let mut capture = Capture::new(UrlKey::parse(&url).as_str(), stamp);
    capture.original = Some(url);
    capture.mime = Some(pick(&MEDIA, number).to_owned());
    capture.status = Some(if mix.is_multiple_of(11) { 404 } else { 200 });
    capture.digest = Some(format!("sha1:{digest}"));
    capture.length = Some(mix % 60_000 + 300);
    capture.offset = Some(mix % 1_000_000_000);
    capture.file = Some(format!(
        "{}-{year}-{year}0403171100-{file:05}-kb-prod-har-003.warc.gz",
        year * 7 + file % 9
    ));
    Ok(capture)
}

fn lines(count: u64, out: &mut impl Write) -> Result<(), Failure> {
    for number in 0..urls(count) {
        for nth in 0..pick(&CAPTURES, number) {
            let line = Format::Cdxj.write_line(&capture(count, number, nth)?);
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Returns the numbers of URLs to look up, scattered over all of them.
fn scattered(count: u64, lookups: u64) -> impl Iterator<Item = u64> {
    let end = urls(count).max(1);
    (0..lookups).map(move |number| mixed(number + 1) % end)
}

fn targets(count: u64, lookups: u64, kind: &str, out: &mut impl Write) -> Result<(), Failure> {
    for number in scattered(count, lookups) {
        let url = url(number).replace('&', "%26");
        match kind {
            "exact" => writeln!(out, "/cdx?url={url}&output=json")?,
            "closest" => {
                writeln!(
                    out,
                    "/cdx?url={url}&closest=20120704120000&limit=1&output=json"
                )?;
            }
            "prefix" => {
                let folder = url.rsplit_once('/').map_or("", |(folder, _)| folder);
                let folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
                writeln!(
                    out,
                    "/cdx?url={folder}/&matchType=prefix&limit=100&output=json"
                )?;
            }
            other => return Err(format!("there are no targets of kind {other}").into()),
        }
    }
    Ok(())
}

fn ingest(directory: &Path, file: &str, out: &mut impl Write) -> Result<(), Failure> {
    let captures = CaptureIndex::open(directory, &OpenOptions::default())?.captures;
    let start = Instant::now();
    let mut import = captures.begin_import("measured")?;
    import.read_lines(file, BufReader::with_capacity(1 << 20, File::open(file)?))?;
    let report = import.complete_import()?;
    let seconds = start.elapsed().as_secs_f64();
    if report.damaged > 0 {
        return Err(format!("{} lines are damaged", report.damaged).into());
    }
    drop(captures);
    // Opened again, the captures are in tables and no more in logs.
    drop(CaptureIndex::open(directory, &OpenOptions::default())?);
    let memory = tools_testing::peak_memory("self");
    let bytes: u64 = fs::read_dir(directory)?
        .map(|entry| entry?.metadata())
        .map(|metadata| metadata.map(|metadata| metadata.len()))
        .sum::<io::Result<u64>>()?;
    writeln!(out, "{} {seconds:.3} {bytes} {memory}", report.captures)?;
    Ok(())
}

/// Returns times one thing after the other, and says how many captures there were.
fn timed(
    out: &mut impl Write,
    what: &str,
    all: impl Iterator<Item = u64>,
    mut find: impl FnMut(u64) -> Result<u64, Failure>,
) -> Result<(), Failure> {
    let mut times = Vec::new();
    let mut found = 0;
    let start = Instant::now();
    for number in all {
        let start = Instant::now();
        found += find(number)?;
        times.push(start.elapsed());
    }
    let seconds = start.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = times.len().saturating_sub(1) * 99 / 100;
    let p99 = times.get(at).map_or(0, Duration::as_micros);
    writeln!(out, "{what} {} {seconds:.3} {found} {p99}", times.len())?;
    Ok(())
}

fn look_up(
    directory: &Path,
    count: u64,
    lookups: u64,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let captures = CaptureIndex::open(directory, &OpenOptions::default())?.captures;
    let ask = |query: &CaptureQuery| -> Result<u64, Failure> {
        let mut found = 0;
        for capture in captures.query_captures(query)? {
            capture?;
            found += 1;
        }
        Ok(found)
    };
    let exact =
        |number| -> CaptureQuery { CaptureQuery::new(KeyMatch::Exact(UrlKey::parse(url(number)))) };
    for what in ["cold", "exact"] {
        timed(out, what, scattered(count, lookups), |number| {
            ask(&exact(number))
        })?;
    }
    let at = "20120704120000".parse()?;
    timed(out, "closest", scattered(count, lookups), |number| {
        let mut query = exact(number);
        query.order = Order::Closest(at);
        query.limit = Some(archive_formats::cdx::query::Limit::First(1));
        ask(&query)
    })?;
    timed(out, "prefix", scattered(count, lookups / 10), |number| {
        let url = url(number);
        let host = url.split('/').nth(2).unwrap_or_default();
        ask(&CaptureQuery::new(KeyMatch::for_url(
            MatchKind::Prefix,
            host,
        )?))
    })?;
    writeln!(out, "memory {}", tools_testing::peak_memory("self"))?;
    Ok(())
}

/// Returns the byte behind the line that `at` lies in; the lines of an answer are read from there.
fn next_line(file: &File, at: u64, buffer: &mut [u8]) -> io::Result<u64> {
    let read = file.read_at(buffer, at)?;
    let buffer = &buffer[..read];
    let end = buffer.iter().position(|byte| *byte == b'\n');
    let end = end.map_or(read, |end| end + 1);
    Ok(at + end as u64)
}

fn search(path: &str, count: u64, lookups: u64, out: &mut impl Write) -> Result<(), Failure> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut buffer = vec![0; 4096];
    for what in ["cold", "exact"] {
        timed(out, what, scattered(count, lookups), |number| {
            let wanted = format!("{} ", UrlKey::parse(url(number)));
            let mut low = 0;
            let mut high = length;
            while high - low > 2048 {
                let middle = low.midpoint(high);
                let line = next_line(&file, middle, &mut buffer)?;
                let read = file.read_at(&mut buffer, line)?;
                let start = &buffer[..read.min(wanted.len())];
                if start < wanted.as_bytes() {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            let start = if low == 0 {
                0
            } else {
                next_line(&file, low, &mut buffer)?
            };
            let mut lines = BufReader::with_capacity(
                8192,
                FileTail {
                    file: &file,
                    at: start,
                },
            );
            let mut line = String::new();
            let mut found = 0;
            while lines.read_line(&mut line)? > 0 {
                if line.starts_with(&wanted) {
                    Format::Cdxj.read_line(line.trim_end())?;
                    found += 1;
                } else if line.as_str() > wanted.as_str() {
                    break;
                }
                line.clear();
            }
            Ok(found)
        })?;
    }
    Ok(())
}

/// A file from a place on.
struct FileTail<'a> {
    file: &'a File,
    at: u64,
}

impl io::Read for FileTail<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
