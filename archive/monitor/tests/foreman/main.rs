//! A monitor over real TLS, with nodes that tell the truth, lie, stall, die and are silent.
#![expect(clippy::expect_used, reason = "the helpers of a test may fail it")]

mod fake_node;
mod life;
mod listing;
mod places;
mod served;
mod world;
