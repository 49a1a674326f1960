//! Writes what a fuzzer begins with, and keeps what it has learnt.
//!
//! - `seeds DIR` writes the seeds of every target, and the inputs that are kept of it, to `DIR/<target>/`;
//! - `seeds --keep TARGET DIR` keeps the inputs in a directory.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use conformance_fuzz::inputs::kept;

fn main() -> io::Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    match arguments.as_slice() {
        [flag, target, directory] if flag == "--keep" => {
            let files = fs::read_dir(directory)?.map(|entry| fs::read(entry?.path()));
            let inputs = files.collect::<io::Result<Vec<_>>>()?;
            fs::create_dir_all(&corpus)?;
            fs::write(corpus.join(target), kept::lines(inputs))
        }
        [directory] => write(&corpus, &PathBuf::from(directory)),
        _ => Err(io::Error::other(
            "usage: seeds DIR | seeds --keep TARGET DIR",
        )),
    }
}

fn write(corpus: &Path, directory: &Path) -> io::Result<()> {
    for target in conformance_fuzz::all() {
        let place = directory.join(target.name);
        fs::create_dir_all(&place)?;
        let seeds = (target.seeds)();
        let kept = kept::kept(corpus, target.name)?;
        for (kind, inputs) in [("seed", seeds), ("kept", kept)] {
            for (number, input) in inputs.iter().enumerate() {
                let path = place.join(format!("{kind}-{number}"));
                if !path.try_exists()? {
                    fs::File::create_new(path)?.write_all(input)?;
                }
            }
        }
        println!("{}", target.name);
    }
    Ok(())
}
