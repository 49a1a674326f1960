//! Fuzzes `proxy_request`; what must be true is said in `src/inputs/`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| conformance_fuzz::run("proxy_request", input));
