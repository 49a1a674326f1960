//! Generates the wire types from `archive/v1/*.proto`, with no `protoc` on any machine.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

const FILES: [&str; 7] = [
    "archive/v1/types.proto",
    "archive/v1/ingest.proto",
    "archive/v1/batch.proto",
    "archive/v1/access.proto",
    "archive/v1/replica.proto",
    "archive/v1/node.proto",
    "archive/v1/preservation.proto",
];

#[expect(
    clippy::disallowed_methods,
    reason = "build output: made again by the next build"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=archive");
    let descriptors = protox::compile(FILES, ["."])?;
    let output = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(output.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .bytes(".")
        .generate_default_stubs(true)
        .compile_fds(descriptors)?;
    Ok(())
}
