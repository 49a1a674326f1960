//! Serial numbers and lists of revoked certificates.
//!
//! A list is always complete: certificates that an earlier list revoked stay revoked. A list that is damaged or was
//! signed by another authority is an error, never a list that forgets.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use rcgen::{
    CertificateRevocationListParams, KeyIdMethod, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use x509_parser::parse_x509_crl;

use super::validity::{since_1970, time_at};
use super::{CertificateAuthority, PkiError, parsed, unreadable};
use crate::pem::first_section;
use crate::role::shorten_text;

/// The serial number of a certificate, written in hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial(Vec<u8>);

impl CertificateAuthority {
    /// Makes the list of revoked certificates, PEM: those of `previous` and those of `revoke`. `now` is the time of
    /// this list and of the new revocations, `next` the time by which the next list is announced (no peer enforces it:
    /// a list that is out of date still revokes).
    ///
    /// # Errors
    ///
    /// [`PkiError`] if `previous` is not a list of this authority, or a time is before 1970.
    pub fn revoke_serials(
        &self,
        previous: Option<&str>,
        revoke: &[Serial],
        now: SystemTime,
        next: SystemTime,
    ) -> Result<String, PkiError> {
        let mut revoked = previous
            .map(|list| self.revoked_in(list))
            .transpose()?
            .unwrap_or_default();
        for serial in revoke {
            revoked.entry(serial.clone()).or_insert(now);
        }
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(1970, 1, 1) + since_1970(now)?,
            next_update: date_time_ymd(1970, 1, 1) + since_1970(next)?,
            // The number grows with every list without a counter: no two lists are made in one second.
            crl_number: SerialNumber::from(since_1970(now)?.as_secs()),
            issuing_distribution_point: None,
            revoked_certs: revoked
                .into_iter()
                .map(|(serial, since)| {
                    Ok(RevokedCertParams {
                        serial_number: SerialNumber::from(serial.0),
                        revocation_time: date_time_ymd(1970, 1, 1) + since_1970(since)?,
                        reason_code: None,
                        invalidity_date: None,
                    })
                })
                .collect::<Result<_, PkiError>>()?,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Ok(params.signed_by(&self.issuer)?.pem()?)
    }

    /// Returns the serial numbers that a list of this authority revokes, each with its time.
    ///
    /// # Errors
    ///
    /// [`PkiError`] if the text is not a list of this authority.
    pub fn revoked_in(&self, list: &str) -> Result<BTreeMap<Serial, SystemTime>, PkiError> {
        let what = "the list of revoked certificates";
        let der = first_section::<CertificateRevocationListDer<'_>>(list)
            .map_err(|e| unreadable(what, &e))?;
        let (_, list) = parse_x509_crl(&der).map_err(|e| unreadable(what, &e))?;
        let own = self.der()?;
        let own = parsed(&own, "the authority's certificate")?;
        if list.verify_signature(own.public_key()).is_err() {
            return Err(PkiError::OtherList);
        }
        list.iter_revoked_certificates()
            .map(|entry| {
                Ok((
                    Serial::new(entry.raw_serial()),
                    time_at(entry.revocation_date.timestamp())?,
                ))
            })
            .collect()
    }
}

impl Serial {
    /// Reads the serial number of a certificate (PEM).
    ///
    /// # Errors
    ///
    /// [`PkiError`] if the text is not a certificate.
    pub fn of_certificate(certificate: &str) -> Result<Self, PkiError> {
        let what = "the certificate";
        let der =
            first_section::<CertificateDer<'_>>(certificate).map_err(|e| unreadable(what, &e))?;
        Ok(Self::new(parsed(&der, what)?.raw_serial()))
    }

    /// Makes a serial number of DER bytes, whose leading zeros are not part of the number.
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self(
            bytes
                .iter()
                .copied()
                .skip_while(|byte| *byte == 0)
                .collect(),
        )
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl FromStr for Serial {
    type Err = PkiError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match hex::decode(text) {
            Ok(bytes) if (1..=20).contains(&bytes.len()) && bytes.iter().any(|byte| *byte != 0) => {
                Ok(Self::new(&bytes))
            }
            _ => Err(PkiError::Serial(shorten_text(text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::super::tests::{YEAR, at, long};
    use super::*;

    /// Fails if a new revocation list forgets a serial number of the one before, or the time of its revocation.
    #[test]
    fn revocations_are_kept_from_list_to_list() {
        let authority = CertificateAuthority::create_authority("lab", long()).unwrap();
        let serials: Vec<Serial> = ["0f", "ff01", "7f00000000000000000000000000000000000001"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let empty = authority
            .revoke_serials(None, &[], at(56 * YEAR), at(57 * YEAR))
            .unwrap();
        assert!(authority.revoked_in(&empty).unwrap().is_empty());
        let one = authority
            .revoke_serials(Some(&empty), &serials[..1], at(57 * YEAR), at(58 * YEAR))
            .unwrap();
        let all = authority
            .revoke_serials(Some(&one), &serials, at(58 * YEAR), at(59 * YEAR))
            .unwrap();
        let expected = serials
            .iter()
            .cloned()
            .zip([57, 58, 58].map(|year| at(year * YEAR)))
            .collect();
        assert_eq!(authority.revoked_in(&all).unwrap(), expected);
        assert!(
            authority
                .revoke_serials(None, &[], at(57 * YEAR), at(57 * YEAR))
                .is_err(),
            "ends before it begins"
        );
    }

    /// Fails if a revocation list with a flipped bit, cut or of another authority is read as one that revokes less.
    #[test]
    fn a_damaged_or_foreign_list_never_forgets_silently() {
        let authority = CertificateAuthority::create_authority("lab", long()).unwrap();
        let list = authority
            .revoke_serials(None, &["0f".parse().unwrap()], at(56 * YEAR), at(57 * YEAR))
            .unwrap();
        let foreign = CertificateAuthority::create_authority("lab", long()).unwrap();
        assert!(matches!(
            foreign.revoked_in(&list),
            Err(PkiError::OtherList)
        ));
        let der = first_section::<CertificateRevocationListDer<'_>>(&list).unwrap();
        let whole = authority.revoked_in(&list).unwrap();
        assert_eq!(whole.len(), 1);
        let mut noticed = 0;
        for position in 0..der.len() {
            let mut flipped = der.to_vec();
            flipped[position] ^= 1;
            let pem = format!(
                "-----BEGIN X509 CRL-----\n{}\n-----END X509 CRL-----\n",
                STANDARD.encode(&flipped)
            );
            // A few bits outside of the signed bytes mean nothing.
            match authority.revoked_in(&pem) {
                Ok(revoked) => assert_eq!(revoked, whole, "bit flipped in byte {position}"),
                Err(_) => noticed += 1,
            }
        }
        assert!(noticed >= der.len() - 2, "{noticed} of {}", der.len());
        for cut in 0..list.len() - 1 {
            assert!(authority.revoked_in(&list[..cut]).is_err(), "cut at {cut}");
        }
    }

    /// Fails if a serial number is printed as another one than was read, or one that no certificate has is accepted.
    #[test]
    fn serial_round_trips_and_zero_is_refused() {
        for text in ["0f", "01", "ff00"] {
            assert_eq!(text.parse::<Serial>().unwrap().to_string(), text);
        }
        for bad in ["", "00", "0000", "f", "0g"] {
            assert!(bad.parse::<Serial>().is_err(), "{bad:?}");
        }
    }
}
