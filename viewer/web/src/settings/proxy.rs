//! The settings of the proxy beside the others: its collection, and who it shows what.

use archive_daemon::settings::InvalidSettings;

use viewer_proxy::ProxySettings;

use super::{Settings, undecided_access};

impl Settings {
    /// Checks the section `[proxy]`, if there is one.
    pub(super) fn check_proxy(&self) -> Result<(), InvalidSettings> {
        let Some(proxy) = &self.proxy else {
            return Ok(());
        };
        proxy.check()?;
        let collections = self.all_collections();
        if let Some(name) = &proxy.collection
            && !collections.iter().any(|own| own.name == *name)
        {
            return Err(ProxySettings::unknown_collection(name));
        }
        if proxy.listen.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        // A proxy has no encryption of its own, so that nothing but who sees what can be asked for.
        let is_decided = !self.collections.is_empty()
            && self
                .collections
                .iter()
                .all(|own| own.default_access.is_some());
        if self.access.is_none() || !is_decided {
            return Err(undecided_access("proxy", proxy.listen));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::settings;
    use super::*;

    fn checked(set: &[&str]) -> Result<(), InvalidSettings> {
        settings(set).check()
    }

    /// Fails if a proxy for other machines starts before it was decided what they see, or with an unknown collection.
    #[test]
    fn proxy_beyond_loopback_wants_access_settings() {
        let data = "proxy.data=p";
        let loopback = "proxy.listen=127.0.0.1:0";
        let beyond = "proxy.listen=0.0.0.0:0";
        let access = "access={}";
        let open = "collection=[{name=\"all\"}]";
        let decided = "collection=[{name=\"all\",default_access=\"allow\"}]";
        checked(&[data, loopback]).unwrap();
        checked(&[data, loopback, "proxy.collection=all"]).unwrap();
        checked(&[data, beyond, access, decided]).unwrap();
        for set in [
            vec![data, beyond],
            vec![data, beyond, access],
            vec![data, beyond, decided],
            vec![data, beyond, access, open],
        ] {
            let error = checked(&set).unwrap_err();
            let said = error.to_string();
            assert!(said.contains("write a section [access]"), "{set:?}: {said}");
        }
        let error = checked(&[data, loopback, "proxy.collection=none"]).unwrap_err();
        assert!(error.to_string().contains("`none`"), "{error}");
    }
}
