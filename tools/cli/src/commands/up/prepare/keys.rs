//! The keys of the archive of `holdfast up`: its signing key, its authority, and a certificate of each part and person.
//!
//! The signing key, the trust file and the authority are made once. Certificates are issued at every start.

use std::path::Path;
use std::time::{Duration, SystemTime};

use archive_durable::{replace_file, replace_secret};
use archive_rpc::{CertificateAuthority, Grant, InvalidGrant, PkiError, Validity};
use jiff::Timestamp;
use tools_terminal::exit::{Exit, Failure};

use crate::commands::pki::directory::{Record, forget_ended, record_in};

use super::{
    ARCHIVE, CHECKSUM_PART, CHECKSUM_REPLICA, INDEX, REPLICAS, VIEWER, disk, secret_state, state,
};

/// The environment: the trust domain of every certificate.
const ENVIRONMENT: &str = "holdfast.local";

/// The validity of certificates that are issued at every start.
const DAYS: u64 = 90;

/// The validity of the authority.
const AUTHORITY_DAYS: u64 = 20 * 365;

/// Issues a certificate for every part and every person of the default set-up.
pub(super) fn issue_certificates(data: &Path, now: Timestamp) -> Result<(), Failure> {
    let pki = data.join("pki");
    let authority = keep_authority(&pki, now)?;
    forget_ended(&pki, now)?;
    for (file, grants) in identities() {
        let grants: Vec<Grant> = grants
            .iter()
            .map(|grant| grant.parse())
            .collect::<Result<_, _>>()
            .map_err(|error: InvalidGrant| Failure::because_failed(error.to_string()))?;
        let hosts = ["127.0.0.1", "localhost"];
        let validity = validity(now, DAYS);
        let issued = authority
            .issue_certificate(&grants, &hosts, validity)
            .map_err(|error| refused(&error))?;
        // Known before it exists: `holdfast pki revoke` finds it by its name.
        let until = Timestamp::try_from(validity.not_after);
        let until = until.map_err(|error| Failure::because_failed(error.to_string()))?;
        record_in(
            &pki,
            &Record::describe_issued(&issued, &grants, &hosts, now, until),
        )?;
        replace_secret(&pki.join(format!("{file}.key")), issued.key.as_bytes())
            .map_err(|error| disk(&error))?;
        replace_file(
            &pki.join(format!("{file}.pem")),
            issued.certificate.as_bytes(),
        )
        .map_err(|error| disk(&error))?;
    }
    Ok(())
}

/// Returns the authority, which the first start creates, with a list of revoked certificates that is empty.
fn keep_authority(pki: &Path, now: Timestamp) -> Result<CertificateAuthority, Failure> {
    let life = validity(now, AUTHORITY_DAYS);
    let certificate = pki.join("authority.pem");
    let secret = pki.join("authority.key");
    let authority =
        if let (Some(certificate), Some(key)) = (state(&certificate)?, secret_state(&secret)?) {
            CertificateAuthority::from_pem(
                &String::from_utf8_lossy(&certificate),
                &String::from_utf8_lossy(&key),
            )
            .map_err(|error| refused(&error))?
        } else {
            let authority = CertificateAuthority::create_authority(ENVIRONMENT, life)
                .map_err(|error| refused(&error))?;
            replace_secret(&secret, authority.key().as_bytes()).map_err(|error| disk(&error))?;
            replace_file(&certificate, authority.certificate().as_bytes())
                .map_err(|error| disk(&error))?;
            authority
        };
    let revoked = pki.join("revoked.pem");
    if state(&revoked)?.is_none() {
        let none = authority.revoke_serials(None, &[], now.into(), life.not_after);
        let none = none.map_err(|error| refused(&error))?;
        replace_file(&revoked, none.as_bytes()).map_err(|error| disk(&error))?;
    }
    Ok(authority)
}

/// Returns the file name and the grants of each certificate.
fn identities() -> Vec<(String, Vec<String>)> {
    let people = ["harvester", "researcher", "officer", "operator"];
    let mut identities = vec![
        (
            "repository".to_owned(),
            vec![format!("repository/{ARCHIVE}")],
        ),
        (INDEX.to_owned(), vec![format!("index/{ARCHIVE}")]),
        (VIEWER.to_owned(), vec![format!("viewer/{ARCHIVE}")]),
        (
            "default".to_owned(),
            people.iter().map(|role| format!("{role}/local")).collect(),
        ),
    ];
    for custodian in ["custodian-1", "custodian-2"] {
        identities.push((custodian.to_owned(), vec![format!("custodian/{custodian}")]));
    }
    for replica in REPLICAS {
        identities.push((
            format!("monitor-{replica}"),
            vec![format!("monitor/{replica}")],
        ));
        identities.push((
            format!("bitarchive-{replica}"),
            vec![format!("node/{replica}-1")],
        ));
    }
    identities.push((
        CHECKSUM_PART.to_owned(),
        vec![
            format!("monitor/{CHECKSUM_REPLICA}"),
            format!("node/{CHECKSUM_REPLICA}-1"),
        ],
    ));
    identities
}

/// Returns the validity of a certificate that is issued now.
fn validity(now: Timestamp, days: u64) -> Validity {
    let now = SystemTime::from(now);
    Validity {
        // A clock that was set back a little must not make a fresh certificate invalid.
        not_before: now - Duration::from_hours(1),
        not_after: now + Duration::from_hours(24 * days),
    }
}

fn refused(error: &PkiError) -> Failure {
    Failure::new(Exit::Settings, error.to_string())
}
