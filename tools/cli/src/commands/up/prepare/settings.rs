//! The settings files that `holdfast up` writes: one for each part, on ports that are free.
//!
//! Owns that a file is written once.

use std::path::Path;

use archive_durable::replace_file;
use tools_terminal::exit::Failure;

use super::super::ports::{Ports, free_addresses};
use super::{ARCHIVE, CHECKSUM_PART, CHECKSUM_REPLICA, INDEX, VIEWER, disk};

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
        index,
        viewer,
        replay,
        web,
        proxy,
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
    write_settings(data, "repository", &text)?;
    let text = format!(
        "{}[index]\ndata = \"{shown}/{INDEX}/captures\"\nrepository = \"{repository}\"\ntrust = \"{shown}/trust.json\"\n",
        rpc(INDEX, &index)
    );
    write_settings(data, INDEX, &text)?;
    let text = viewer_settings(
        data,
        [&repository, &index],
        [&viewer, &replay, &web, &proxy],
    );
    write_settings(data, VIEWER, &text)
}

/// Returns the section `[rpc]` of a part.
fn rpc_section(data: &Path, part: &str, address: &str) -> String {
    let shown = data.display();
    format!(
        "[rpc]\nlisten = \"{address}\"\ncertificate = \"{shown}/pki/{part}.pem\"\nkey = \"{shown}/pki/{part}.key\"\n\
         authorities = \"{shown}/pki/authority.pem\"\nrevoked = \"{shown}/pki/revoked.pem\"\n\n"
    )
}

/// Returns the settings of the viewer, with its peers and the addresses on which it listens.
fn viewer_settings(
    data: &Path,
    [repository, index]: [&str; 2],
    [viewer, replay, web, proxy]: [&str; 4],
) -> String {
    let shown = data.display();
    // Ports do not part cookies: the pages are on another host than replay.
    let pages = web.replace("127.0.0.1", "localhost");
    format!(
        "{}[viewer]\nrepository = \"{repository}\"\nindex = \"{index}\"\ntrust = \"{shown}/trust.json\"\n\n\
         [replay]\nlisten = \"{replay}\"\n\n[web]\nlisten = \"{web}\"\nurl = \"http://{pages}\"\n\n\
         [proxy]\nlisten = \"{proxy}\"\ndata = \"{shown}/proxy\"\n",
        rpc_section(data, VIEWER, viewer)
    )
}

/// Writes the settings file of a part.
fn write_settings(data: &Path, part: &str, text: &str) -> Result<(), Failure> {
    let text = format!(
        "# The settings of this part. Written once by `holdfast up`; yours from then on.\n\n{text}"
    );
    replace_file(
        &data.join("settings").join(format!("{part}.toml")),
        text.as_bytes(),
    )
    .map_err(|error| disk(&error))
}
