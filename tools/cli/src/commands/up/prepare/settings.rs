//! The settings files that `holdfast up` writes: one for each part, on ports that are free.
//!
//! Owns that a file is written once. Parts that earlier builds did not have are added to an older directory.

use std::path::Path;

use archive_durable::{directory, replace};
use tools_terminal::exit::Failure;

use super::super::ports::{Ports, free_addresses};
use super::{ARCHIVE, CHECKSUM_PART, CHECKSUM_REPLICA, INDEX, VIEWER, disk, state};

/// Writes a settings file for each part, on ports that are free now.
pub(super) fn write_settings_files(data: &Path, ports: &Ports) -> Result<(), Failure> {
    let shown = data.display();
    let rpc = |part: &str, address: &str| rpc_section(data, part, address);
    let [
        repository,
        monitor_one,
        node_one,
        monitor_two,
        node_two,
        checksums,
    ] = free_addresses(ports)?;
    let mut replicas = Vec::new();
    for (replica, monitor, node) in [
        ("one", &monitor_one, &node_one),
        ("two", &monitor_two, &node_two),
    ] {
        let part = format!("monitor-{replica}");
        let text = format!(
            "{}[monitor]\nreplica = \"{replica}\"\n",
            rpc(&part, monitor)
        );
        write_settings(data, &part, &text)?;
        let part = format!("bitarchive-{replica}");
        let text = format!(
            "{}[bitarchive]\nnode = \"{replica}-1\"\nreplica = \"{replica}\"\ndata = \"{shown}/{replica}/node\"\n\
             volumes = [\"{shown}/{replica}/volume\"]\nreserve = \"500 MB\"\ntrust = \"{shown}/trust.json\"\n\
             monitor = \"{monitor}\"\n",
            rpc(&part, node)
        );
        write_settings(data, &part, &text)?;
        replicas.push(format!(
            "\n[[replica]]\nid = \"{replica}\"\nkind = \"bitarchive\"\nrequired = true\nmonitor = \"{monitor}\"\n"
        ));
    }
    let text = format!(
        "{}[checksum_replica]\nnode = \"{CHECKSUM_REPLICA}-1\"\nreplica = \"{CHECKSUM_REPLICA}\"\n\
         data = \"{shown}/{CHECKSUM_REPLICA}\"\ntrust = \"{shown}/trust.json\"\n",
        rpc(CHECKSUM_PART, &checksums)
    );
    write_settings(data, CHECKSUM_PART, &text)?;
    replicas.push(format!(
        "\n[[replica]]\nid = \"{CHECKSUM_REPLICA}\"\nkind = \"checksum\"\nrequired = true\nmonitor = \"{checksums}\"\n"
    ));
    let text = format!(
        "{}[repository]\narchive = \"{ARCHIVE}\"\ndata = \"{shown}/repository\"\nsigning_key = \"{shown}/signing.key\"\n\
         trust = \"{shown}/trust.json\"\n{}",
        rpc("repository", &repository),
        replicas.concat()
    );
    write_settings(data, "repository", &text)
}

/// Returns the section `[rpc]` of a part.
fn rpc_section(data: &Path, part: &str, address: &str) -> String {
    let shown = data.display();
    format!(
        "[rpc]\nlisten = \"{address}\"\ncertificate = \"{shown}/pki/{part}.pem\"\nkey = \"{shown}/pki/{part}.key\"\n\
         authorities = \"{shown}/pki/authority.pem\"\nrevoked = \"{shown}/pki/revoked.pem\"\n\n"
    )
}

/// Chooses addresses for a part that this directory did not have before: free ones that no other part of it has.
fn later_addresses<const N: usize>(data: &Path, ports: &Ports) -> Result<[String; N], Failure> {
    let mut taken = String::new();
    let settings = data.join("settings");
    for entry in directory::list(&settings).map_err(|error| disk(&error))? {
        let text = state(&settings.join(&entry.name))?.unwrap_or_default();
        taken.push_str(&String::from_utf8_lossy(&text));
    }
    let candidates: [String; 16] = free_addresses(ports)?;
    let is_free = |address: &String| !taken.contains(&format!("\"{address}\""));
    let found: Vec<String> = candidates.into_iter().filter(is_free).take(N).collect();
    found.try_into().map_err(|found: Vec<_>| {
        Failure::failed(format!(
            "there are {} free ports on 127.0.0.1, and {N} are needed",
            found.len()
        ))
    })
}

/// Writes the settings file of the index.
pub(super) fn write_index_settings(
    data: &Path,
    ports: &Ports,
    repository: &str,
) -> Result<(), Failure> {
    let [address] = later_addresses(data, ports)?;
    let shown = data.display();
    let text = format!(
        "{}[index]\ndata = \"{shown}/{INDEX}/captures\"\nrepository = \"{repository}\"\ntrust = \"{shown}/trust.json\"\n",
        rpc_section(data, INDEX, &address)
    );
    write_settings(data, INDEX, &text)
}

/// Writes the settings file of the viewer.
pub(super) fn write_viewer_settings(
    data: &Path,
    ports: &Ports,
    peers: [&str; 2],
) -> Result<(), Failure> {
    let [address, replay, web, proxy] = later_addresses(data, ports)?;
    let text = viewer_file(data, peers, [&address, &replay]);
    let web = pages_section(&web);
    let proxy = proxy_section(data, &proxy);
    write_settings(data, VIEWER, &format!("{text}{web}{proxy}"))
}

/// Returns the settings of a viewer without pages and proxy, as earlier builds have written them.
fn viewer_file(data: &Path, [repository, index]: [&str; 2], listen: [&str; 2]) -> String {
    let shown = data.display();
    let [address, replay] = listen;
    format!(
        "{}[viewer]\nrepository = \"{repository}\"\nindex = \"{index}\"\ntrust = \"{shown}/trust.json\"\n\n\
         [replay]\nlisten = \"{replay}\"\n",
        rpc_section(data, VIEWER, address)
    )
}

/// Returns the section of the pages. They are on another host than replay: ports do not part cookies.
fn pages_section(address: &str) -> String {
    let url = address.replace("127.0.0.1", "localhost");
    format!("\n[web]\nlisten = \"{address}\"\nurl = \"http://{url}\"\n")
}

/// Returns the section `[proxy]` of the viewer.
fn proxy_section(data: &Path, address: &str) -> String {
    let shown = data.display();
    format!("\n[proxy]\nlisten = \"{address}\"\ndata = \"{shown}/proxy\"\n")
}

/// Adds the pages and the proxy to settings of before there were any, if the file is as it was written.
pub(super) fn add_listeners(data: &Path, ports: &Ports) -> Result<(), Failure> {
    let path = data.join("settings").join(format!("{VIEWER}.toml"));
    let viewer: viewer_web::Settings = crate::commands::parts::load(&path, &[])?;
    if viewer.web.is_some() && viewer.proxy.is_some() {
        return Ok(());
    }
    let peers = &viewer.viewer;
    let replay = viewer.replay.listen.to_string();
    let peers = [peers.repository.as_str(), peers.index.as_str()];
    let first = viewer_file(data, peers, [viewer.rpc.listen.as_str(), replay.as_str()]);
    let web = viewer.web.map(|web| web.listen.to_string());
    let section = web.as_deref().map(pages_section).unwrap_or_default();
    let written = settings_text(&format!("{first}{section}"));
    if state(&path)?.unwrap_or_default() != written.as_bytes() {
        return Ok(());
    }
    let [new_web, proxy] = later_addresses(data, ports)?;
    let pages = pages_section(&web.unwrap_or(new_web));
    let proxy = proxy_section(data, &proxy);
    write_settings(data, VIEWER, &format!("{first}{pages}{proxy}"))
}

/// Returns the text of a settings file with its first line.
fn settings_text(text: &str) -> String {
    format!(
        "# The settings of this part. Written once by `holdfast up`; yours from then on.\n\n{text}"
    )
}

/// Writes the settings file of a part.
fn write_settings(data: &Path, part: &str, text: &str) -> Result<(), Failure> {
    let text = settings_text(text);
    replace(
        &data.join("settings").join(format!("{part}.toml")),
        text.as_bytes(),
    )
    .map_err(|error| disk(&error))
}
