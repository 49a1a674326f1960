//! dnsmasq on a free port of loopback: a name server that knows a list of names, and no others.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tools_testing::{PATIENCE, eventually_blocking};

use super::tools::free_port;

/// A name server that runs until it is dropped.
pub struct Dnsmasq {
    directory: TempDir,
    child: Child,
    pub port: u16,
}

impl Dnsmasq {
    /// Starts a server of these names.
    pub fn start(binary: &Path, names: &[(String, Ipv4Addr)]) -> Self {
        // The server ends at once if somebody took the port.
        for _ in 0..20 {
            if let Some(server) = Self::start_on(binary, names, free_port()) {
                return server;
            }
        }
        panic!("dnsmasq found no port");
    }

    fn start_on(binary: &Path, names: &[(String, Ipv4Addr)], port: u16) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let hosts = directory.path().join("hosts");
        let lines = names
            .iter()
            .map(|(name, address)| format!("{address} {name}\n"));
        std::fs::write(&hosts, lines.collect::<String>()).expect("write");
        let settings = format!(
            "port={port}\nlisten-address=127.0.0.1\nbind-interfaces\nno-resolv\nno-hosts\naddn-hosts={}\nuser=\ngroup=\n\
             pid-file\nlocal=/#/\n",
            hosts.display()
        );
        let file = directory.path().join("dnsmasq.conf");
        std::fs::write(&file, settings).expect("write");
        let log = std::fs::File::create(directory.path().join("log")).expect("a log");
        let child = Command::new(binary)
            .args(["--keep-in-foreground", "--log-facility=-"])
            .arg(format!("--conf-file={}", file.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("dnsmasq");
        let mut server = Self {
            directory,
            child,
            port,
        };
        let (name, address) = names.first().expect("a name");
        let is_up = eventually_blocking("dnsmasq answers or ends", PATIENCE, || {
            if server.child.try_wait().expect("wait").is_some() {
                return Ok(false);
            }
            if server.knows(name, *address) {
                Ok(true)
            } else {
                Err(server.log_text())
            }
        });
        assert!(
            is_up || server.log_text().contains("in use"),
            "{}",
            server.log_text()
        );
        is_up.then_some(server)
    }

    fn log_text(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Asks for the address of a name (RFC 1035, 4.1).
    fn knows(&self, name: &str, address: Ipv4Addr) -> bool {
        let mut query = vec![0x4f, 0x4b, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            query.push(u8::try_from(label.len()).expect("a label"));
            query.extend(label.bytes());
        }
        query.extend([0, 0, 1, 0, 1]);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        socket.connect(("127.0.0.1", self.port)).expect("connect");
        let limit = Some(Duration::from_secs(1));
        socket.set_read_timeout(limit).expect("a limit");
        let mut answer = [0; 512];
        let asked = socket
            .send(&query)
            .and_then(|_sent| socket.recv(&mut answer));
        // The address is the end of the answer.
        asked.is_ok_and(|length| answer[..length].ends_with(&address.octets()))
    }
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().expect("an end");
    }
}
