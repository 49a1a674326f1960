//! An archive that is stopped in the middle of an upload: the job waits for it, and then everything is stored.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::archive::Archive;
use crate::interruptions::write_site;
use crate::support::job::{JobFolder, executable, run};
use crate::support::nginx::Nginx;
use crate::support::relay::Relay;
use crate::support::tools::Tools;

/// Files small enough that several are stored while the crawl runs.
const ORDER: &str = "[files]\nmax_size = '200 kB'\n";

/// Returns a relay between a crawl and the repository, and the client file with it.
fn through_relay(archive: &Archive) -> (Relay, PathBuf) {
    let client = std::fs::read_to_string(archive.data().join("client.toml")).unwrap();
    let (before, rest) = client.split_once("repository = \"127.0.0.1:").unwrap();
    let (port, after) = rest.split_once('"').unwrap();
    let relay = Relay::to(port.parse().unwrap());
    let path = archive.path("relayed.toml");
    let port = relay.port;
    let text = format!("{before}repository = \"127.0.0.1:{port}\"{after}");
    std::fs::write(&path, text).unwrap();
    (relay, path)
}

/// Fails if a job gives up an archive that is away for a while, stores a file twice or not at all, or keeps what is
/// stored.
#[test]
fn archive_stopped_during_upload_is_waited_for() {
    let Some(tools) = Tools::find() else { return };
    let root = tempfile::tempdir().unwrap();
    write_site(root.path());
    let site = Nginx::serve(&tools.nginx, root.path());
    let mut archive = Archive::processes(&["scrub.enabled=false"]);
    let order = archive.path("order.toml");
    std::fs::write(&order, ORDER).unwrap();
    let (relay, client) = through_relay(&archive);
    // Some pieces into the first upload, behind the handshake.
    let pid = archive.data().join("run/repository.pid");
    relay.after(14, move || {
        let pid = std::fs::read_to_string(pid).expect("a process id");
        let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("a process");
        kill_process(pid, Signal::KILL).expect("a signal");
    });
    let mut child = executable()
        .arg("--client")
        .arg(client)
        .args(["crawl", &site.base(), "--delay", "0", "--job", "9"])
        .arg("--order")
        .arg(&order)
        .current_dir(archive.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    for line in lines.by_ref() {
        said.push(line.unwrap());
        if said.iter().any(|line| line.contains("tried again in")) {
            break;
        }
    }
    archive.restart("repository");
    said.extend(lines.map(Result::unwrap));
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{said:#?}");
    assert!(
        said.iter().any(|line| line.contains("tried again in")),
        "{said:#?}"
    );

    let job = JobFolder::only_one(&archive.path("holdfast-crawls"));
    for folder in ["warcs", "metadata"] {
        let left = std::fs::read_dir(job.path().join(folder)).unwrap().count();
        assert_eq!(left, 0, "{folder}");
    }
    let receipts = std::fs::read_dir(job.path().join("receipts")).unwrap();
    let receipts: Vec<PathBuf> = receipts.map(|entry| entry.unwrap().path()).collect();
    archive.wait_until_alive();
    let verify = ["verify", "receipt"].into_iter();
    let paths = receipts.iter().map(|path| path.to_str().unwrap());
    archive
        .run(&verify.chain(paths).collect::<Vec<_>>())
        .expect(0);
    let listed = archive.run(&["list"]).expect(0).out;
    let words = listed.split_whitespace();
    let names: Vec<&str> = words.filter(|word| word.ends_with(".warc.gz")).collect();
    assert_eq!(names.len(), receipts.len(), "{listed}");
    assert!(names.len() > 3, "{listed}");
    let mut files = Vec::new();
    for name in names {
        let path = archive.path(name);
        let words = ["get", name, "-o", path.to_str().unwrap()];
        archive.run(&words).expect(0);
        files.push(path);
    }
    run(executable().args(["warc", "check"]).args(&files)).expect(0);
    let responses = tools.judge("responses.py", &[], &files);
    let responses = responses.as_object().unwrap();
    let logged = job.uris();
    assert_eq!(responses.len(), logged.len());
    assert!(
        responses
            .iter()
            .all(|(uri, count)| count == 1 && logged.contains(uri))
    );
}
