//! The promises about the digests that a depositor announces.
//!
//! # Errors
//!
//! A promise fails if it is broken, or if the archive cannot be asked.

use std::sync::Arc;

use anyhow::{Result, ensure};
use archive_client::{AnnouncedDigests, ClientError, Deposit, Ingest};

use super::{ABC, CutSource, MD5, everything, is_unknown};
use crate::contract::{deposit, name, refusal, root, store_deposit};

/// A function that makes an announcement wrong.
type Spoil = fn(&mut AnnouncedDigests);

/// Each digest that is announced is held against the bytes; one that is wrong refuses them, and takes no name.
pub async fn every_announced_digest_is_compared(archive: &dyn Ingest) -> Result<()> {
    let wrong: [(&str, Spoil); 3] = [
        ("blake3", |a| a.blake3 = Some(root(b"abd"))),
        ("sha256", |a| a.sha256 = a.sha256.map(flipped)),
        ("md5", |a| a.md5 = a.md5.map(flipped)),
    ];
    for (which, spoil) in wrong {
        let name = name(&format!("ingest-wrong-{which}.warc"))?;
        let good = everything(&name)?;
        let mut bad = good.clone();
        spoil(&mut bad.announced);
        let error = refusal(store_deposit(archive, &bad).await)?;
        ensure!(
            matches!(error, ClientError::Mismatch(_)),
            "{which}: {error:?}"
        );
        is_unknown(archive, &name).await?;
        let stored = store_deposit(archive, &good).await?;
        ensure!(stored.admission.root == root(ABC), "{which}: {stored:?}");
        // Now that the name has bytes, a wrong digest is one of other bytes.
        let error = refusal(store_deposit(archive, &bad).await)?;
        ensure!(
            matches!(error, ClientError::Exists(_)),
            "{which}: {error:?}"
        );
    }
    Ok(())
}

/// BLAKE3 alone, or SHA-256 alone, says that it is the same content.
pub async fn every_strong_digest_proves(archive: &dyn Ingest) -> Result<()> {
    let name = name("ingest-strong.warc")?;
    let whole = everything(&name)?;
    store_deposit(archive, &whole).await?;
    let AnnouncedDigests { blake3, sha256, .. } = whole.announced;
    let none = AnnouncedDigests::default();
    for announced in [
        AnnouncedDigests { blake3, ..none },
        AnnouncedDigests { sha256, ..none },
    ] {
        let one = Deposit {
            announced,
            // The archive need not read what it knows.
            source: Arc::new(CutSource(Vec::new())),
            ..whole.clone()
        };
        let stored = store_deposit(archive, &one).await?;
        ensure!(stored.already, "{announced:?}");
    }
    Ok(())
}

/// Where MD5 or nothing is announced, the bytes themselves are compared.
pub async fn md5_or_nothing_proves_no_sameness(archive: &dyn Ingest) -> Result<()> {
    let name = name("ingest-weak.warc")?;
    let whole = everything(&name)?;
    store_deposit(archive, &whole).await?;
    let none = AnnouncedDigests::default();
    let md5 = AnnouncedDigests {
        md5: Some(MD5),
        ..none
    };
    for announced in [md5, none] {
        let weak = Deposit {
            announced,
            no_digest: true,
            ..whole.clone()
        };
        let stored = store_deposit(archive, &weak).await?;
        ensure!(stored.already, "{announced:?}");
    }
    let other = Deposit {
        announced: none,
        no_digest: true,
        source: Arc::new(b"abd".to_vec()),
        ..whole
    };
    let error = refusal(store_deposit(archive, &other).await)?;
    ensure!(matches!(error, ClientError::Exists(_)), "{error:?}");
    Ok(())
}

/// Without a digest a file is taken only where that is said.
pub async fn lack_of_digests_must_be_stated(archive: &dyn Ingest) -> Result<()> {
    let name = name("ingest-no-digest.warc")?;
    let silent = Deposit {
        announced: AnnouncedDigests::default(),
        ..deposit(&name, ABC)
    };
    let error = refusal(store_deposit(archive, &silent).await)?;
    ensure!(matches!(error, ClientError::Invalid(_)), "{error:?}");
    is_unknown(archive, &name).await?;
    let said = Deposit {
        no_digest: true,
        ..silent
    };
    let stored = store_deposit(archive, &said).await?;
    ensure!(stored.admission.root == root(ABC), "{:?}", stored.admission);
    Ok(())
}

fn flipped<const N: usize>(mut digest: [u8; N]) -> [u8; N] {
    if let Some(last) = digest.last_mut() {
        *last ^= 1;
    }
    digest
}
