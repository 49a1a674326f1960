//! The promises of a trait's implementations, as functions that each of them is held to: a suite for each trait.
//!
//! A promise is one public function. It says in its first line what is promised, takes what makes the promise, and
//! names itself when that is broken; the suite's `all` holds an implementation to every one of them. Suites take an
//! archive as they find it, and leave files in it: run each once on an archive.
//!
//! Not promised: anything that only a fault shows. Faults are played in `tests/cluster` and `tests/crash`, on real
//! parts.
//!
//! # Errors
//!
//! A promise fails if it is broken, or if the archive cannot be asked; the error says which. A seeded bug must fail
//! too.

pub mod access;
pub mod ingest;
pub mod preservation;
pub mod read_at;
pub mod replica;

use std::any::type_name;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use archive_client::{AnnouncedDigests, ClientError, Deposit, Ingest, StoreEvent, StoredFile};
use archive_model::{FileName, Root};
use tools_testing::noise;

/// No promise may take longer to be shown.
const PATIENCE: Duration = Duration::from_mins(5);

/// The result of holding one implementation to the promises.
#[derive(Debug, Default)]
pub struct Outcome {
    kept: usize,
    broken: Vec<String>,
}

impl Outcome {
    /// Holds an implementation to one promise: to what `promise`, a call of the function of that name, says of it.
    pub async fn check<F: Future<Output = Result<()>>>(&mut self, promise: F) {
        let late = |_elapsed| Err(anyhow!("not done after {PATIENCE:?}"));
        let said = tokio::time::timeout(PATIENCE, Box::pin(promise)).await;
        self.note(name_of::<F>(), said.unwrap_or_else(late));
    }

    fn note(&mut self, promise: &str, said: Result<()>) {
        match said {
            Ok(()) => self.kept += 1,
            Err(error) => self.broken.push(format!("{promise}: {error:#}")),
        }
    }

    /// The promises that are broken, each with what was seen.
    pub fn broken(&self) -> &[String] {
        &self.broken
    }

    /// Returns the number of promises that were kept.
    pub const fn kept_count(&self) -> usize {
        self.kept
    }
}

/// The name of the function that this is the type, or the future, of.
fn name_of<F>() -> &'static str {
    let parts = type_name::<F>().rsplit("::");
    let mut names = parts.filter(|part| !part.starts_with('{'));
    names.next().unwrap_or_default()
}

/// The name of a file that a suite stores.
pub fn name(text: &str) -> Result<FileName> {
    Ok(FileName::new(text)?)
}

/// The root of these bytes, by another implementation than ours.
pub fn root(bytes: &[u8]) -> Root {
    Root::from_bytes(*blake3::hash(bytes).as_bytes())
}

/// A deposit of `bytes`, with their BLAKE3 hash announced.
pub fn deposit(name: &FileName, bytes: &[u8]) -> Deposit {
    Deposit {
        name: name.clone(),
        size: bytes.len() as u64,
        source: Arc::new(bytes.to_vec()),
        announced: AnnouncedDigests {
            blake3: Some(root(bytes)),
            ..AnnouncedDigests::default()
        },
        no_digest: false,
    }
}

/// Stores `bytes`, and watches nothing.
async fn store(
    archive: &dyn Ingest,
    name: &FileName,
    bytes: &[u8],
) -> Result<StoredFile, ClientError> {
    store_deposit(archive, &deposit(name, bytes)).await
}

/// Stores a deposit, and watches nothing.
async fn store_deposit(archive: &dyn Ingest, deposit: &Deposit) -> Result<StoredFile, ClientError> {
    let ignore = |_: StoreEvent<'_>| {};
    archive.store(deposit, &ignore).await
}

/// Returns the error of a refusal, or an error if nothing was refused.
fn refusal<T: fmt::Debug>(answer: Result<T, ClientError>) -> Result<ClientError> {
    match answer {
        Err(error) => Ok(error),
        Ok(answer) => Err(anyhow!("it was not refused: {answer:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn a_promise_that_is_kept() -> Result<()> {
        std::future::ready(Ok(())).await
    }

    async fn a_promise_that_is_broken() -> Result<()> {
        std::future::ready(Err(anyhow!("so it was seen"))).await
    }

    /// Fails if a suite counts a broken promise among those that are kept, or does not say which promise is broken.
    #[tokio::test]
    async fn a_broken_promise_names_itself() {
        let mut outcome = Outcome::default();
        outcome.check(a_promise_that_is_kept()).await;
        outcome.check(a_promise_that_is_broken()).await;
        assert_eq!(outcome.kept_count(), 1);
        assert_eq!(
            outcome.broken(),
            ["a_promise_that_is_broken: so it was seen"]
        );
    }
}
