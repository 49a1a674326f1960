//! The client file of `holdfast up`: written where it is absent, and people's from then on.

use std::path::Path;

use archive_durable::{DiskError, read_state, replace_file};
use tools_terminal::exit::Failure;
use tools_terminal::output::tell_user;

/// An endpoint: its name, and its address.
pub(super) type Endpoint<'a> = (&'static str, &'a str);

/// Writes the client file where it is absent. What people wrote into it stays; where the archive is at another place
/// by now, that is said.
pub(super) fn keep_client_file(data: &Path, endpoints: &[Endpoint<'_>]) -> Result<(), Failure> {
    let path = data.join("client.toml");
    let fresh = client_file(data, endpoints);
    let failed = |error: DiskError| Failure::because_failed(error.to_string());
    let Some(kept) = read_state(&path).map_err(failed)? else {
        return replace_file(&path, fresh.as_bytes()).map_err(failed);
    };
    // The first line is a remark; what `up` writes ends with the first identity.
    let own = |text: &str| {
        let (_, rest) = text.split_once('\n').unwrap_or_default();
        let (own, _) = rest.split_once("[[identity]]").unwrap_or((rest, ""));
        own.trim().to_owned()
    };
    let kept = String::from_utf8_lossy(&kept).into_owned();
    if own(&kept) != own(&fresh) {
        tell_user(&format!(
            "{} stays as it is, and differs from what this archive would write (its addresses and certificates); delete it \
             to have it written anew",
            path.display()
        ));
    }
    Ok(())
}

fn client_file(data: &Path, endpoints: &[Endpoint<'_>]) -> String {
    let pki = data.join("pki");
    let pki = pki.display();
    let mut text = vec![format!(
        "# How to reach the archive. Written by `holdfast up` where it is absent; add to it what you like.\n\nauthorities = \"{pki}/authority.pem\"\n\
         trust = \"{}/trust.json\"\ncertificate = \"{pki}/default.pem\"\nkey = \"{pki}/default.key\"\n\n\
         [endpoints]\n",
        data.display()
    )];
    for (name, address) in endpoints {
        text.push(format!("{name} = \"{address}\"\n"));
    }
    for name in ["custodian-1", "custodian-2"] {
        text.push(format!(
            "\n[[identity]]\nrole = \"custodian\"\nname = \"{name}\"\ncertificate = \"{pki}/{name}.pem\"\nkey = \"{pki}/{name}.key\"\n"
        ));
    }
    text.concat()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests edit files")]
mod tests {
    use super::super::prepare::prepare_archive;

    /// Fails if settings that an operator has changed are meddled with, or the client file names a listener that the
    /// operator has taken out.
    #[test]
    fn viewer_without_pages_and_proxy_stays_so() {
        let directory = tempfile::tempdir().unwrap();
        let now = archive_daemon::Clock::system_clock().now();
        let client = prepare_archive(directory.path(), None, now)
            .unwrap()
            .client_file();
        let settings = directory.path().join("settings/viewer.toml");
        let written = std::fs::read_to_string(&settings).unwrap();
        let client_text = std::fs::read_to_string(&client).unwrap();
        assert!(
            client_text.contains("\nweb = \"http://localhost:")
                && client_text.contains("\nproxy = \"127.0.0.1:"),
            "{client_text}"
        );
        let (kept, _) = written.split_once("\n[web]\n").unwrap();
        std::fs::write(&settings, kept).unwrap();
        std::fs::remove_file(&client).unwrap();
        let prepared = prepare_archive(directory.path(), None, now).unwrap();
        assert_eq!(std::fs::read_to_string(&settings).unwrap(), kept);
        let client_text = std::fs::read_to_string(&client).unwrap();
        assert!(
            !client_text.contains("\nweb = ") && !client_text.contains("\nproxy = "),
            "{client_text}"
        );
        assert!(!prepared.greeting().contains("localhost"));
    }

    /// Fails if a start throws away what people wrote into the client file.
    #[test]
    fn second_start_keeps_client_file() {
        let directory = tempfile::tempdir().unwrap();
        let now = archive_daemon::Clock::system_clock().now();
        let client = prepare_archive(directory.path(), None, now)
            .unwrap()
            .client_file();
        let own = "\n[[identity]]\nrole = \"reader\"\nname = \"mine\"\n";
        let written = std::fs::read_to_string(&client).unwrap();
        std::fs::write(&client, format!("{written}{own}")).unwrap();
        prepare_archive(directory.path(), None, now).unwrap();
        let kept = std::fs::read_to_string(&client).unwrap();
        assert_eq!(kept, format!("{written}{own}"));
        std::fs::remove_file(&client).unwrap();
        prepare_archive(directory.path(), None, now).unwrap();
        assert_eq!(std::fs::read_to_string(&client).unwrap(), written);
    }
}
