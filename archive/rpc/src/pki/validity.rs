//! The times in a certificate: whole seconds, from 1970 to 9999.

use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, date_time_ymd};

use super::PkiError;

/// The times from and to which a certificate is valid. Whole seconds; from 1970 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first moment of the validity.
    pub not_before: SystemTime,
    /// The last moment of the validity.
    pub not_after: SystemTime,
}

impl Validity {
    pub(super) fn certificate_params(self) -> Result<CertificateParams, PkiError> {
        if self.not_after <= self.not_before {
            return Err(PkiError::Validity);
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.not_before = date_time_ymd(1970, 1, 1) + since_1970(self.not_before)?;
        params.not_after = date_time_ymd(1970, 1, 1) + since_1970(self.not_after)?;
        Ok(params)
    }
}

/// 9999-12-31T23:59:59Z, the last moment that X.509 can express.
pub(super) const LAST_SECOND: u64 = 253_402_300_799;

/// Returns the time since 1970, which rcgen needs beside `date_time_ymd(1970, 1, 1)`.
pub(super) fn since_1970(time: SystemTime) -> Result<Duration, PkiError> {
    let seconds = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()
        .map(|since| since.as_secs());
    seconds
        .filter(|seconds| *seconds <= LAST_SECOND)
        .map(Duration::from_secs)
        .ok_or(PkiError::Validity)
}

pub(super) fn time_at(seconds: i64) -> Result<SystemTime, PkiError> {
    let seconds = u64::try_from(seconds)
        .ok()
        .filter(|seconds| *seconds <= LAST_SECOND)
        .ok_or(PkiError::Validity)?;
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}
