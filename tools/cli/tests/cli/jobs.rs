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
    let good = examples.join("examples/count.wat");
    let ran = run_component(&good).expect(3);
    assert!(ran.err.contains("there is no client file"), "{ran:?}");
    let bad = tempfile::NamedTempFile::new().expect("a file");
    std::io::Write::write_all(&mut bad.as_file(), b"(component)").expect("write");
    let ran = run_component(bad.path()).expect(5);
    assert!(ran.err.contains("it exports neither"), "{ran:?}");
}
