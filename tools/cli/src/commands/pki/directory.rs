//! The directory of an authority: what is in it, and how files come into it. Nothing is written over anything but the
//! list of revoked certificates.

use std::path::{Path, PathBuf};

use archive_durable::{
    DiskError, directory, read_secret, read_state, replace_file, replace_secret,
};
use archive_rpc::{CertificateAuthority, Grant, IssuedCertificate, Serial};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tools_terminal::exit::{Exit, Failure};

use super::refused;

/// The record of a certificate that was issued.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::commands) struct Record {
    pub(super) serial: String,
    /// The grants that the certificate carries, each as `role/name`.
    pub(super) grants: Vec<String>,
    hosts: Vec<String>,
    issued: Timestamp,
    pub(super) until: Timestamp,
    /// SHA-256 of the certificate: what the audit trail keeps.
    fingerprint: String,
}

impl Record {
    /// Describes a certificate that is issued now.
    pub(in crate::commands) fn describe_issued(
        certificate: &IssuedCertificate,
        grants: &[Grant],
        hosts: &[&str],
        issued: Timestamp,
        until: Timestamp,
    ) -> Self {
        Self {
            serial: certificate.serial.to_string(),
            grants: grants.iter().map(ToString::to_string).collect(),
            hosts: hosts.iter().map(ToString::to_string).collect(),
            issued,
            until,
            fingerprint: certificate.fingerprint.clone(),
        }
    }
}

/// An authority and its directory.
#[derive(Debug)]
pub(super) struct Pki {
    path: PathBuf,
    pub(super) authority: CertificateAuthority,
}

/// The certificates that a person may have meant.
#[derive(Debug)]
pub(super) struct CertificateMatches {
    /// The certificates that were issued here and fit.
    issued: Vec<Record>,
    /// The serial number that the person may have meant, whether or not it was issued here.
    number: Option<Serial>,
}

/// A function that reads a small file, if there is one.
type ReadFile = fn(&Path) -> Result<Option<Vec<u8>>, DiskError>;

impl Pki {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let read = |name: &str, read: ReadFile| -> Result<String, Failure> {
            let file = path.join(name);
            let bytes = read(&file).map_err(|error| disk(&error))?;
            utf8(&file, bytes)?.ok_or_else(|| {
                Failure::wrong_usage(format!(
                    "{}: there is no such file; name the directory that `holdfast pki init` made with --dir",
                    file.display()
                ))
            })
        };
        let certificate = read("authority.pem", read_state)?;
        let authority =
            CertificateAuthority::from_pem(&certificate, &read("authority.key", read_secret)?);
        Ok(Self {
            path: path.to_owned(),
            authority: authority.map_err(|error| refused(&error).about_file(&shown(path)))?,
        })
    }

    /// Notes what is issued.
    pub(super) fn record_certificate(&self, record: &Record) -> Result<(), Failure> {
        record_in(&self.path, record)
    }

    /// Finds the certificates that `what` names: a serial number, `role/name` or a name.
    pub(super) fn find_certificates(&self, what: &str) -> Result<CertificateMatches, Failure> {
        let mut issued = Vec::new();
        for record in records_in(&self.path)? {
            let is_named = |grant: &String| {
                grant == what || grant.split_once('/').is_some_and(|(_, name)| name == what)
            };
            if record.serial == what || record.grants.iter().any(is_named) {
                issued.push(record);
            }
        }
        let number = what.parse().ok();
        Ok(CertificateMatches { issued, number })
    }
}

impl CertificateMatches {
    /// Returns the serial numbers that are meant; a number that was not issued here is one if it looks like one.
    pub(super) fn matched_serials(&self, what: &str, path: &Path) -> Result<Vec<Serial>, Failure> {
        if self.issued.is_empty() {
            // As long as ours are: a mistyped name must not pass for a number.
            let number = self.number.clone().filter(|_| what.len() >= 16);
            return number.map(|serial| vec![serial]).ok_or_else(|| {
                Failure::wrong_usage(format!(
                    "{what:?} is neither in a certificate that was issued in {} nor a whole serial number; correct it",
                    path.display()
                ))
            });
        }
        let serials = self.issued.iter().map(|record| record.serial.parse());
        serials
            .collect::<Result<_, _>>()
            .map_err(|error| refused(&error))
    }

    /// Returns the holder of a certificate, as words to append.
    pub(super) fn holder_of(&self, serial: &Serial) -> String {
        let serial = serial.to_string();
        let record = self.issued.iter().find(|record| record.serial == serial);
        record.map_or_else(
            || " (not issued in this directory)".to_owned(),
            |record| format!(" ({}, until {})", record.grants.join(", "), record.until),
        )
    }
}

/// Notes what the authority in the directory `pki` issues.
pub(in crate::commands) fn record_in(pki: &Path, record: &Record) -> Result<(), Failure> {
    let issued = pki.join("issued");
    make_directory(&issued)?;
    let text = serde_json::to_string_pretty(record);
    let text = text.map_err(|error| Failure::because_failed(error.to_string()))?;
    let path = issued.join(format!("{}.json", record.serial));
    write_new(&path, format!("{text}\n").as_bytes(), false)
}

/// Returns what the authority in the directory `pki` has issued.
fn records_in(pki: &Path) -> Result<Vec<Record>, Failure> {
    let issued = pki.join("issued");
    if !issued.is_dir() {
        return Ok(Vec::new());
    }
    let mut records = Vec::new();
    for entry in directory::list_directory(&issued).map_err(|error| disk(&error))? {
        let path = issued.join(&entry.name);
        let is_record = !entry.name.to_string_lossy().starts_with('.');
        let Some(text) = read_text(&path)?.filter(|_| is_record) else {
            continue;
        };
        let record: Record = serde_json::from_str(&text).map_err(|error| {
            let path = path.display();
            Failure::new(
                Exit::Settings,
                format!(
                    "{path}: {error}; restore it, or revoke by serial number after moving it away"
                ),
            )
        })?;
        records.push(record);
    }
    records.sort_by(|a, b| (a.issued, &a.serial).cmp(&(b.issued, &b.serial)));
    Ok(records)
}

/// Forgets the certificates that ended before `now`: there is nothing to revoke.
pub(in crate::commands) fn forget_ended(pki: &Path, now: Timestamp) -> Result<(), Failure> {
    for record in records_in(pki)? {
        if record.until < now {
            let path = pki.join("issued").join(format!("{}.json", record.serial));
            directory::remove_name(&path).map_err(|error| disk(&error))?;
        }
    }
    Ok(())
}

/// Makes a directory that may be there, and those that lead to it.
pub(super) fn make_directory(path: &Path) -> Result<(), Failure> {
    let mut absent: Vec<&Path> = path.ancestors().collect();
    absent.retain(|path| !path.as_os_str().is_empty() && !path.is_dir());
    for path in absent.into_iter().rev() {
        directory::make_directory(path).map_err(|error| disk(&error))?;
    }
    Ok(())
}

/// Refuses a path that bears something.
pub(super) fn check_free(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        let path = path.display();
        return Err(Failure::new(
            Exit::Refused,
            format!("{path}: is there already and was not touched; choose another directory"),
        ));
    }
    Ok(())
}

/// Returns whether just these bytes are there. Other bytes in their place are refused.
pub(super) fn is_there(path: &Path, bytes: &[u8]) -> Result<bool, Failure> {
    match read_state(path).map_err(|error| disk(&error))? {
        Some(found) if found == bytes => Ok(true),
        Some(_) => check_free(path).map(|()| true),
        None => Ok(false),
    }
}

/// Writes a file that is not there; `secret`: only its owner may read it.
pub(super) fn write_new(path: &Path, bytes: &[u8], secret: bool) -> Result<(), Failure> {
    check_free(path)?;
    let written = if secret {
        replace_secret(path, bytes)
    } else {
        replace_file(path, bytes)
    };
    written.map_err(|error| disk(&error))
}

/// Replaces the list of revoked certificates, the only file that is replaced.
pub(super) fn replace_list(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace_file(path, bytes).map_err(|error| disk(&error))
}

/// Reads a small file; `None` if it is not there.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, Failure> {
    utf8(path, read_state(path).map_err(|error| disk(&error))?)
}

fn utf8(path: &Path, bytes: Option<Vec<u8>>) -> Result<Option<String>, Failure> {
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|_error| {
        Failure::new(
            Exit::Settings,
            format!(
                "{}: not UTF-8 text; restore it from a backup",
                path.display()
            ),
        )
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn disk(error: &DiskError) -> Failure {
    Failure::because_failed(error.to_string())
}
