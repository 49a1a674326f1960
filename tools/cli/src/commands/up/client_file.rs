//! The client file of `holdfast up`: written where it is absent, and people's from then on.

use std::path::Path;

use archive_durable::{DiskError, read_state, replace};
use tools_terminal::exit::Failure;
use tools_terminal::output::tell;

/// An endpoint: its name, and its address.
pub(super) type Endpoint<'a> = (&'static str, &'a str);

/// Writes the client file where it is absent. What people wrote into it stays; where the archive is at another place
/// by now, that is said.
pub(super) fn keep_client_file(data: &Path, endpoints: &[Endpoint<'_>]) -> Result<(), Failure> {
    let path = data.join("client.toml");
    let fresh = client_file(data, endpoints);
    let failed = |error: DiskError| Failure::failed(error.to_string());
    let Some(kept) = read_state(&path).map_err(failed)? else {
        return replace(&path, fresh.as_bytes()).map_err(failed);
    };
    // The first line is a remark; what `up` writes ends with the first identity.
    let own = |text: &str| {
        let (_, rest) = text.split_once('\n').unwrap_or_default();
        let (own, _) = rest.split_once("[[identity]]").unwrap_or((rest, ""));
        own.trim().to_owned()
    };
    let kept = String::from_utf8_lossy(&kept).into_owned();
    let all = endpoint_lines(endpoints);
    for older in older_endpoints(endpoints) {
        let older = endpoint_lines(&older);
        if own(&kept) == own(&fresh.replacen(&all, &older, 1)) {
            // As it was written before there were all these parts: it gets their lines, and keeps what people added.
            let text = kept.replacen(&older, &all, 1);
            return replace(&path, text.as_bytes()).map_err(failed);
        }
    }
    if own(&kept) != own(&fresh) {
        tell(&format!(
            "{} stays as it is, and differs from what this archive would write (its addresses and certificates); delete it \
             to have it written anew",
            path.display()
        ));
    }
    Ok(())
}

/// Returns the endpoints that a client file of an earlier build may have: all without one or more of those behind the
/// first.
fn older_endpoints<'a>(endpoints: &[Endpoint<'a>]) -> Vec<Vec<Endpoint<'a>>> {
    let mut all: Vec<Vec<Endpoint<'a>>> = vec![Vec::new()];
    for (at, endpoint) in endpoints.iter().enumerate() {
        let without = if at == 0 { Vec::new() } else { all.clone() };
        for own in &mut all {
            own.push(*endpoint);
        }
        all.extend(without);
    }
    all.retain(|own| own.len() < endpoints.len());
    all
}

fn endpoint_lines(endpoints: &[Endpoint<'_>]) -> String {
    let lines = endpoints.iter();
    let lines = lines.map(|(name, address)| format!("{name} = \"{address}\"\n"));
    lines.collect()
}

fn client_file(data: &Path, endpoints: &[Endpoint<'_>]) -> String {
    let pki = data.join("pki");
    let pki = pki.display();
    let mut text = vec![format!(
        "# How to reach the archive. Written by `holdfast up` where it is absent; add to it what you like.\n\nauthorities = \"{pki}/authority.pem\"\n\
         trust = \"{}/trust.json\"\ncertificate = \"{pki}/default.pem\"\nkey = \"{pki}/default.key\"\n\n\
         [endpoints]\n{}",
        data.display(),
        endpoint_lines(endpoints)
    )];
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
    use super::super::prepare::prepare;

    /// Fails if a client file of before there was a part does not learn of it, or loses what people wrote.
    #[test]
    fn older_client_file_gets_each_endpoint() {
        for gone in [&["web"][..], &["replay"], &["web", "replay"]] {
            let directory = tempfile::tempdir().unwrap();
            let now = archive_daemon::Clock::system().now();
            let client = prepare(directory.path(), None, now).unwrap().client_file();
            let written = std::fs::read_to_string(&client).unwrap();
            assert!(written.contains("\nweb = \"http://localhost:"), "{written}");
            let own = "\n[[identity]]\nrole = \"reader\"\nname = \"mine\"\n";
            let is_kept = |line: &&str| {
                !gone
                    .iter()
                    .any(|name| line.starts_with(&format!("{name} = ")))
            };
            let older: Vec<&str> = written.lines().filter(is_kept).collect();
            std::fs::write(&client, older.join("\n") + "\n" + own).unwrap();
            prepare(directory.path(), None, now).unwrap();
            let kept = std::fs::read_to_string(&client).unwrap();
            assert_eq!(kept, format!("{written}{own}"), "{gone:?}");
        }
    }

    /// Fails if a data directory of before there were pages does not get them, or loses what its operator set.
    #[test]
    fn older_data_directory_gets_pages() {
        let directory = tempfile::tempdir().unwrap();
        let now = archive_daemon::Clock::system().now();
        let client = prepare(directory.path(), None, now).unwrap().client_file();
        let settings = directory.path().join("settings/viewer.toml");
        let written = std::fs::read_to_string(&settings).unwrap();
        let (older, section) = written.split_once("\n[web]\n").unwrap();
        assert!(section.contains("url = \"http://localhost:"), "{section}");
        // As it was written, before there were pages.
        std::fs::write(&settings, older).unwrap();
        std::fs::remove_file(&client).unwrap();
        prepare(directory.path(), None, now).unwrap();
        let now_has = std::fs::read_to_string(&settings).unwrap();
        assert!(
            now_has.starts_with(older) && now_has.contains("[web]"),
            "{now_has}"
        );
        let client_has = std::fs::read_to_string(&client).unwrap();
        assert!(
            client_has.contains("web = \"http://localhost:"),
            "{client_has}"
        );
        // An operator who has changed the file is not meddled with, and the client file has no pages then.
        let own = format!("{older}requests = 7\n");
        std::fs::write(&settings, &own).unwrap();
        std::fs::remove_file(&client).unwrap();
        let prepared = prepare(directory.path(), None, now).unwrap();
        assert_eq!(std::fs::read_to_string(&settings).unwrap(), own);
        assert!(!std::fs::read_to_string(&client).unwrap().contains("web = "));
        assert!(!prepared.greeting().contains("localhost"));
    }

    /// Fails if a client file of before there was a viewer does not learn of it, or loses what people wrote.
    #[test]
    fn older_client_file_gets_the_viewer() {
        let directory = tempfile::tempdir().unwrap();
        let now = archive_daemon::Clock::system().now();
        let client = prepare(directory.path(), None, now).unwrap().client_file();
        let written = std::fs::read_to_string(&client).unwrap();
        let lines = written.lines();
        let of_viewer = |line: &&str| line.starts_with("replay = ") || line.starts_with("proxy = ");
        let lines: Vec<String> = lines
            .filter(of_viewer)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(lines.len(), 2, "{written}");
        let own = "\n[[identity]]\nrole = \"reader\"\nname = \"mine\"\n";
        for older in [lines.concat(), lines[1].clone()] {
            std::fs::write(&client, written.replacen(&older, "", 1) + own).unwrap();
            prepare(directory.path(), None, now).unwrap();
            let kept = std::fs::read_to_string(&client).unwrap();
            assert_eq!(kept, format!("{written}{own}"));
        }
    }

    /// Fails if settings of before there was a proxy do not get one, or if those that people have changed do.
    #[test]
    fn older_viewer_settings_get_the_proxy() {
        let directory = tempfile::tempdir().unwrap();
        let now = archive_daemon::Clock::system().now();
        prepare(directory.path(), None, now).unwrap();
        let settings = directory.path().join("settings/viewer.toml");
        let written = std::fs::read_to_string(&settings).unwrap();
        let (older, _) = written.split_once("\n[proxy]").unwrap();
        std::fs::write(&settings, older).unwrap();
        let client = prepare(directory.path(), None, now).unwrap().client_file();
        let kept = std::fs::read_to_string(&settings).unwrap();
        assert!(
            kept.starts_with(older) && kept.contains("\n[proxy]\n"),
            "{kept}"
        );
        let client_text = std::fs::read_to_string(&client).unwrap();
        assert!(
            client_text.contains("\nproxy = \"127.0.0.1:"),
            "{client_text}"
        );
        let without = format!("{older}\n[[collection]]\nname = \"all\"\n");
        std::fs::write(&settings, &without).unwrap();
        prepare(directory.path(), None, now).unwrap();
        assert_eq!(std::fs::read_to_string(&settings).unwrap(), without);
    }

    /// Fails if a client file of before there was an index does not learn of it, or loses what people wrote.
    #[test]
    fn older_client_file_gets_the_index() {
        let directory = tempfile::tempdir().unwrap();
        let now = archive_daemon::Clock::system().now();
        let client = prepare(directory.path(), None, now).unwrap().client_file();
        let written = std::fs::read_to_string(&client).unwrap();
        let line = written.lines().find(|line| line.starts_with("index = "));
        let line = format!("{}\n", line.unwrap());
        let own = "\n[[identity]]\nrole = \"reader\"\nname = \"mine\"\n";
        let replay = written.lines().find(|line| line.starts_with("replay = "));
        let replay = format!("{}\n", replay.unwrap());
        let web = written.lines().find(|line| line.starts_with("web = "));
        let web = format!("{}\n", web.unwrap());
        let proxy = written.lines().find(|line| line.starts_with("proxy = "));
        let proxy = format!("{}\n", proxy.unwrap());
        let older = written.replacen(&line, "", 1).replacen(&replay, "", 1);
        let older = older.replacen(&web, "", 1).replacen(&proxy, "", 1) + own;
        std::fs::write(&client, older).unwrap();
        for part in ["index", "viewer"] {
            let settings = directory.path().join(format!("settings/{part}.toml"));
            std::fs::remove_file(settings).unwrap();
        }
        prepare(directory.path(), None, now).unwrap();
        let kept = std::fs::read_to_string(&client).unwrap();
        // The ports are those that are free now.
        let mut expected = format!("{written}{own}");
        for (part, name, older) in [
            ("index", "index", line),
            ("viewer", "web", web),
            ("viewer", "replay", replay),
            ("viewer", "proxy", proxy),
        ] {
            let line = kept
                .lines()
                .find(|line| line.starts_with(&format!("{name} = ")));
            let address = line.unwrap().split('"').nth(1).unwrap();
            let settings = directory.path().join(format!("settings/{part}.toml"));
            let settings = std::fs::read_to_string(settings).unwrap();
            let listen = address
                .trim_start_matches("http://")
                .replace("localhost", "127.0.0.1");
            let listen = format!("listen = \"{listen}\"");
            assert!(settings.contains(&listen), "{listen}: {settings}");
            expected = expected.replacen(&older, &format!("{}\n", line.unwrap()), 1);
        }
        assert_eq!(kept, expected);
    }

    /// Fails if a start throws away what people wrote into the client file.
    #[test]
    fn second_start_keeps_client_file() {
        let directory = tempfile::tempdir().unwrap();
        let now = archive_daemon::Clock::system().now();
        let client = prepare(directory.path(), None, now).unwrap().client_file();
        let own = "\n[[identity]]\nrole = \"reader\"\nname = \"mine\"\n";
        let written = std::fs::read_to_string(&client).unwrap();
        std::fs::write(&client, format!("{written}{own}")).unwrap();
        prepare(directory.path(), None, now).unwrap();
        let kept = std::fs::read_to_string(&client).unwrap();
        assert_eq!(kept, format!("{written}{own}"));
        std::fs::remove_file(&client).unwrap();
        prepare(directory.path(), None, now).unwrap();
        assert_eq!(std::fs::read_to_string(&client).unwrap(), written);
    }
}
