//! Batch jobs through the doors of a repository.

mod ends;
mod limits;
mod monitor;
mod resumed;
mod silent;
mod world;
