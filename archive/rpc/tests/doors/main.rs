//! Both ends of real connections: TCP on port 0, real TLS, real HTTP/2.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "tests may stop at the first surprise"
)]

mod browser;
mod drain;
mod echo;
mod environment;
mod noise;
mod peers;
mod reload;
