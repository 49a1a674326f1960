//! The identity that a person names behind `--as`.

use std::fmt;
use std::str::FromStr;

use archive_rpc::{Grant, InvalidGrant, Role};

/// An identity as a person names it: `custodian`, or `custodian/custodian-1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityName {
    role: Role,
    name: Option<String>,
}

impl IdentityName {
    /// Returns whether the identity `name` in `role` fits.
    pub(super) fn fits_role(&self, role: Role, name: &str) -> bool {
        self.role == role && self.name.as_deref().is_none_or(|own| own == name)
    }
}

impl FromStr for IdentityName {
    type Err = InvalidGrant;

    fn from_str(text: &str) -> Result<Self, InvalidGrant> {
        if !text.contains('/') {
            let role = text.parse()?;
            return Ok(Self { role, name: None });
        }
        let grant: Grant = text.parse()?;
        Ok(Self {
            role: grant.role(),
            name: Some(grant.name().to_owned()),
        })
    }
}

impl fmt::Display for IdentityName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{}/{name}", self.role),
            None => write!(f, "{}", self.role),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if an identity with a name fits another name of its role, or an identity that is half written is accepted.
    #[test]
    fn a_role_means_any_name_in_it() {
        for (text, anna, ben) in [("officer", true, true), ("officer/anna", true, false)] {
            let who: IdentityName = text.parse().unwrap();
            assert_eq!(who.to_string(), text);
            assert_eq!(who.fits_role(Role::Officer, "anna"), anna);
            assert_eq!(who.fits_role(Role::Officer, "ben"), ben);
            assert!(!who.fits_role(Role::Reader, "anna"));
        }
        for bad in [
            "",
            "king",
            "king/anna",
            "officer/",
            "/anna",
            "officer/a/b",
            "Officer",
        ] {
            assert!(bad.parse::<IdentityName>().is_err(), "{bad:?}");
        }
    }
}
