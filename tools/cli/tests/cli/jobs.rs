//! `batch run`: a job that no node would take is refused before it is sent.

use std::path::Path;

use crate::holdfast::{Ran, executable, run};

/// Runs `batch run` with a component, where there is no way to an archive.
fn run_component(file: &Path) -> Ran {
    let nowhere = tempfile::tempdir().expect("a directory");
    run(executable()
        .args(["batch", "run", "--wasm"])
        .arg(file)
        .current_dir(nowhere.path()))
}

/// Fails if `batch run` turns to the archive without a look at the component.
#[test]
fn refused_component_is_not_handed_in() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../archive/component");
    let text = std::fs::read(examples.join("examples/count.wat")).expect("the example");
    let good = tempfile::NamedTempFile::new().expect("a file");
    let binary = wat::parse_bytes(&text).expect("a component");
    std::io::Write::write_all(&mut good.as_file(), &binary).expect("write");
    let ran = run_component(good.path()).expect(3);
    assert!(ran.err.contains("there is no client file"), "{ran:?}");
    let bad = tempfile::NamedTempFile::new().expect("a file");
    std::io::Write::write_all(&mut bad.as_file(), b"\0asm\x0d\0\x01\0").expect("write");
    let ran = run_component(bad.path()).expect(5);
    assert!(ran.err.contains("it exports neither"), "{ran:?}");
}
