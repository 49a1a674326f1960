//! Batch jobs through the doors of a repository.

mod ends;
mod index;
mod limits;
mod monitor;
mod named;
mod resumed;
mod silent;
mod world;
