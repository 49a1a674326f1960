//! Batch jobs through the doors of a repository.

mod ends;
mod fixture;
mod index;
mod limits;
mod named;
mod replica;
mod resumed;
mod silent;
