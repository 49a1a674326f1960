//! The generated code, and nothing else. `ARCHITECTURE.md` says where it may be named (*What is absent*).
#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    let_underscore_drop,
    rust_2018_idioms,
    rustdoc::all,
    reason = "generated from archive/v1/*.proto, which has the documentation"
)]

tonic::include_proto!("holdfast.archive.v1");
