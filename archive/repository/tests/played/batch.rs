//! Batch jobs through the doors of a repository.

mod ends;
mod index;
mod limits;
mod named;
mod replica;
mod resumed;
mod silent;
mod world;
