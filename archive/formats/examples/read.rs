//! Reads archive files as fast as it can and prints what is in them: records per type, defects, records and MiB per
//! second.
//!
//! `cargo run --release -p archive-formats --example read -- [--defects] [--list] [--check] FILE...`

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::time::Instant;

use archive_formats::warc::{WarcReader, validate_record};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (options, files): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|argument| argument.starts_with("--"));
    let has = |name: &str| options.iter().any(|option| option == name);
    for file in files {
        let start = Instant::now();
        let mut kinds = BTreeMap::new();
        let mut records = 0_u64;
        let mut bytes = 0_u64;
        let mut reader = WarcReader::new(File::open(&file)?);
        let mut defects = Vec::new();
        while let Some(record) = reader.next_record()? {
            let kind = record.kind();
            *kinds.entry(kind.name()).or_insert(0_u64) += 1;
            let uri = if has("--list") {
                record
                    .header()
                    .read_uri("WARC-Target-URI")
                    .map(String::from)
            } else {
                None
            };
            let header = has("--check").then(|| record.header().clone());
            let version = record.version();
            let end = record.read_end()?;
            if let Some(header) = header {
                for violation in validate_record(kind, version, &header, &end) {
                    writeln!(
                        out,
                        "  offset {}: {}: {:?}: {}: {}",
                        violation.offset,
                        violation.clause,
                        violation.severity,
                        violation.rule.name(),
                        violation.words
                    )?;
                }
            }
            records += 1;
            bytes += end.uncompressed_length();
            if has("--list") {
                let length = end.length.map_or("-".into(), |length| length.to_string());
                let uri = uri.unwrap_or_default();
                writeln!(
                    out,
                    "{} {length} {kind} {} {uri}",
                    end.offset, end.block_length
                )?;
            }
            defects.extend(end.defects);
        }
        defects.extend(reader.take_defects());
        let seconds = start.elapsed().as_secs_f64().max(1e-9);
        #[expect(clippy::cast_precision_loss, reason = "only shown")]
        let per_second = |count: u64| count as f64 / seconds;
        writeln!(out, "{file}\t{kinds:?}\t{} defects", defects.len())?;
        writeln!(
            out,
            "  {records} records, {:.0}/s, {:.1} MiB/s decompressed",
            per_second(records),
            per_second(bytes) / 1_048_576.0
        )?;
        if has("--defects") {
            for defect in defects {
                writeln!(out, "  {defect}")?;
            }
        }
    }
    out.flush()?;
    Ok(())
}
