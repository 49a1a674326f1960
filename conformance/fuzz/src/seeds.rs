//! Writes the seeds of every target to `DIR/<target>/`, for a fuzzer to begin with.

use std::io::Write as _;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let directory = std::env::args_os()
        .nth(1)
        .unwrap_or_else(|| "corpus".into());
    for target in conformance_fuzz::all() {
        let place = Path::new(&directory).join(target.name);
        std::fs::create_dir_all(&place)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            let path = place.join(format!("seed-{number}"));
            if !path.try_exists()? {
                std::fs::File::create_new(path)?.write_all(seed)?;
            }
        }
        println!("{}", target.name);
    }
    Ok(())
}
