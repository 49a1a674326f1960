//! The measurements that `tools/bench` cannot do from a shell: it fills a volume without waiting for disks, walks a
//! file on one core, and fills a catalog. It prints figures; the script compares them.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark makes files that nobody keeps, and prints"
)]

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use archive_bitarchive::{Catalog, CatalogEntry, Condition, Layout, Row};
use archive_durable::{Sidecar, volume};
use archive_model::{Digests, FileName, Root, UploadId, VolumeId};
use archive_proof::{Admission, CopyBytes, SigningKey, TreeBuilder, walk_tree};
use clap::Parser;
use jiff::Timestamp;
use serde_json::value::RawValue;

#[derive(Debug, Parser)]
enum Arguments {
    /// Puts small files with sidecars and signed admissions into a volume, unsynced.
    Populate {
        /// The volume's directory.
        volume: PathBuf,
        /// The key that signs, as PEM.
        key: PathBuf,
        /// The number of files.
        files: u64,
    },
    /// Proves a file against its root on one core, three times; prints the best rate in MiB/s.
    Walk {
        /// The file that is proven.
        file: PathBuf,
    },
    /// Fills a catalog; prints rows, seconds, peak memory and the seconds of one scan at each tenth.
    Catalog {
        /// Where.
        directory: PathBuf,
        /// The number of rows.
        rows: u64,
    },
}

fn main() -> Result<()> {
    match Arguments::parse() {
        Arguments::Populate { volume, key, files } => populate(&volume, &key, files),
        Arguments::Walk { file } => walk_file(&file),
        Arguments::Catalog { directory, rows } => fill_catalog(&directory, rows),
    }
}

fn populate(path: &Path, key: &Path, files: u64) -> Result<()> {
    let identity = volume::identify_volume(path).context("no volume")?;
    let key = SigningKey::from_pem(&std::fs::read_to_string(key)?)?;
    let layout = Layout::new(path);
    let now = Timestamp::UNIX_EPOCH;
    for number in 0..files {
        let name = FileName::new(&format!("bench-{number:09}.warc.gz"))?;
        let bytes = name.as_str().as_bytes();
        let root = Root::from_bytes(*blake3::hash(bytes).as_bytes());
        let admission = Admission {
            archive: "local".to_owned(),
            name: name.clone(),
            size: bytes.len() as u64,
            root,
            digests: Digests::default(),
            depositor: "harvester/bench".to_owned(),
            admitted: now,
            upload: UploadId::new("bench")?,
        };
        let envelope = admission.sign(&key)?;
        let sidecar = Sidecar {
            admission: RawValue::from_string(envelope.as_str().to_owned())?,
            outboard: None,
            volume: identity.volume.clone(),
            stored: now,
            unknown: std::collections::BTreeMap::new(),
        };
        let target = layout.target_paths(&name);
        std::fs::write(&target.sidecar, sidecar.to_json()?)?;
        std::fs::write(&target.file, bytes)?;
    }
    Ok(())
}

fn walk_file(path: &Path) -> Result<()> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut builder = TreeBuilder::new(Vec::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = std::io::Read::read(&mut file, &mut buffer)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        builder.update(bytes)?;
    }
    let tree = builder.finish()?;
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let begun = Instant::now();
        let copy = CopyBytes {
            data: &file,
            outboard: Some(&tree.sink),
        };
        let found = walk_tree(copy, tree.content(), &mut |_| ControlFlow::Continue(()));
        best = best.min(begun.elapsed().as_secs_f64());
        ensure!(found.is_intact(), "the file changed under the walk");
    }
    println!("{:.1}", mebibytes(size) / best);
    Ok(())
}

fn fill_catalog(directory: &Path, rows: u64) -> Result<()> {
    let catalog = Catalog::open(directory, 0)?.catalog;
    let volume = VolumeId::new("bench")?;
    let tenth = (rows / 10).max(1);
    let mut entries = Vec::new();
    let mut begun = Instant::now();
    for number in 0..rows {
        entries.push(CatalogEntry {
            name: FileName::new(&format!("bench-{number:09}-20260101000000.warc.gz"))?,
            volume: volume.clone(),
            row: Row {
                size: number,
                root: Some(Root::from_bytes(
                    *blake3::hash(&number.to_le_bytes()).as_bytes(),
                )),
                stored: Timestamp::UNIX_EPOCH,
                verified: None,
                condition: Condition::Present,
            },
        });
        if entries.len() == 10_000 || number + 1 == rows {
            catalog.put_entries(&entries)?;
            entries.clear();
        }
        if (number + 1) % tenth == 0 {
            let filled = begun.elapsed().as_secs_f64();
            begun = Instant::now();
            let mut count = 0;
            for entry in catalog.list_entries(None)? {
                entry?;
                count += 1;
            }
            let scanned = begun.elapsed().as_secs_f64();
            println!(
                "{count} {filled:.2} {scanned:.2} {}",
                tools_testing::peak_memory("self")
            );
            begun = Instant::now();
        }
    }
    Ok(())
}

fn mebibytes(bytes: u64) -> f64 {
    let kibibytes = u32::try_from(bytes >> 10).unwrap_or(u32::MAX);
    f64::from(kibibytes) / 1024.0
}
