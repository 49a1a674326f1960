//! The checksum of each file, as the field writes it.

use std::fmt;

use md5::Md5;
use sha2::{Digest as _, Sha256};

use super::arguments::Arguments;
use super::{Argument, InvalidJob, JobInfo, Plan, Reduce};
use crate::control::StopControl;
use crate::job::{BatchJobError, File, Job, Reads, Sink};

pub(super) const INFO: JobInfo = JobInfo {
    name: "checksum",
    about: "Computes the checksum of each file from all its bytes.",
    output: "NAME##HEX",
    arguments: &[Argument {
        name: "algorithm",
        about: "blake3, md5 or sha256",
        default: Some("blake3"),
    }],
    reduce: Reduce::Concatenate,
};

#[derive(Clone, Copy, Debug)]
enum Algorithm {
    Blake3,
    Md5,
    Sha256,
}

#[derive(Debug)]
struct Checksum(Algorithm);

pub(super) fn plan_checksum(arguments: &Arguments) -> Result<Box<dyn Plan>, InvalidJob> {
    let algorithm = arguments.choice(
        "algorithm",
        &[
            ("blake3", Algorithm::Blake3),
            ("md5", Algorithm::Md5),
            ("sha256", Algorithm::Sha256),
        ],
    )?;
    Ok(Box::new(Checksum(algorithm)))
}

impl Plan for Checksum {
    fn reduce(&self) -> Reduce {
        INFO.reduce
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        let hasher = match self.0 {
            Algorithm::Blake3 => Hasher::Blake3(Box::default()),
            Algorithm::Md5 => Hasher::Md5(Md5::new()),
            Algorithm::Sha256 => Hasher::Sha256(Sha256::new()),
        };
        Ok(Box::new(ChecksumJob {
            name: String::new(),
            hasher,
        }))
    }
}

enum Hasher {
    Blake3(Box<blake3::Hasher>),
    Md5(Md5),
    Sha256(Sha256),
}

impl fmt::Display for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::Blake3(hasher) => hasher.finalize().to_hex().to_string(),
            Self::Md5(hasher) => hex::encode(hasher.clone().finalize()),
            Self::Sha256(hasher) => hex::encode(hasher.clone().finalize()),
        })
    }
}

struct ChecksumJob {
    name: String,
    hasher: Hasher,
}

impl Job for ChecksumJob {
    fn reads(&self) -> Reads {
        Reads::Bytes
    }

    fn begin(&mut self, file: &File, _out: &mut dyn Sink) -> Result<(), BatchJobError> {
        file.name.as_str().clone_into(&mut self.name);
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8], _out: &mut dyn Sink) -> Result<(), BatchJobError> {
        match &mut self.hasher {
            Hasher::Blake3(hasher) => {
                hasher.update(bytes);
            }
            Hasher::Md5(hasher) => hasher.update(bytes),
            Hasher::Sha256(hasher) => hasher.update(bytes),
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        let line = format!("{}##{}\n", self.name, self.hasher);
        Ok(out.write(line.as_bytes())?)
    }
}
