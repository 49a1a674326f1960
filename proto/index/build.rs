//! Generates the wire types from `index/v1/*.proto`, with no `protoc` on any machine.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

const FILES: [&str; 1] = ["index/v1/captures.proto"];

#[expect(
    clippy::disallowed_methods,
    reason = "build output: made again by the next build"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=index");
    let descriptors = protox::compile(FILES, ["."])?;
    let output = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(output.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .bytes(".")
        .generate_default_stubs(true)
        .compile_fds(descriptors)?;
    Ok(())
}
