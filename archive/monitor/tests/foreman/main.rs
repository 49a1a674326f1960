//! A monitor over real TLS, with nodes that tell the truth, lie, stall, die and are silent.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of a test may fail it"
)]

mod batch;
mod batch_node;
mod fake_node;
mod life;
mod listing;
mod places;
mod reduce;
mod served;
mod world;
