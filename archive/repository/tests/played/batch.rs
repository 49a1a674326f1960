//! Tests of batch jobs through the services of a repository.

mod ends;
mod failing;
mod fixture;
mod index;
mod limits;
mod named;
mod replica;
mod resumed;
mod silent;
