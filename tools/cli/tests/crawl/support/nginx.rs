//! nginx on a free port of loopback, with a prefix of its own, and its log.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tools_testing::{PATIENCE, eventually_blocking};

use super::tools::free_port;

/// The number of other ports tried when somebody took the one that was free.
const TRIES: usize = 20;

/// A server that runs until it is dropped.
pub struct Nginx {
    directory: TempDir,
    child: Child,
    pub port: u16,
}

/// A request, as the server logged it when the response had been sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// The time at which the response ended, in milliseconds since 1970.
    pub ended: i64,
    /// The time at which the request began, in milliseconds since 1970.
    pub began: i64,
    /// The address that was asked.
    pub address: String,
    /// The name that was asked for.
    pub host: String,
    pub status: u16,
    pub path: String,
}

impl Nginx {
    /// Starts a server. `http` stands in the section of that name, with `{port}` for the port.
    pub fn start(binary: &Path, http: &str) -> Self {
        for _ in 0..TRIES {
            if let Some(server) = Self::start_on(binary, http, free_port()) {
                return server;
            }
        }
        panic!("nginx found no port in {TRIES} tries");
    }

    /// Starts a server of the files of a folder.
    pub fn serve(binary: &Path, folder: &Path) -> Self {
        let folder = folder.display();
        Self::start(
            binary,
            &format!("server {{ listen 127.0.0.1:{{port}}; root {folder}; }}"),
        )
    }

    /// Starts a server on this port, or none if somebody else listens there.
    fn start_on(binary: &Path, http: &str, port: u16) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let http = http.replace("{port}", &port.to_string());
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {name};\n"))
            .concat();
        // One process that stays in the foreground and keeps its user: the folders of tests are closed to others.
        let settings = format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log error.log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{\ninclude /etc/nginx/mime.types;\n{temporary}keepalive_requests 100000;\nserver_names_hash_bucket_size 128;\n\
             log_format all '$msec $request_time $server_addr $host $status $request_uri';\n\
             access_log access.log all;\n{http}\n}}\n"
        );
        std::fs::write(directory.path().join("nginx.conf"), settings).expect("write");
        let child = Command::new(binary)
            .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx");
        let mut server = Self {
            directory,
            child,
            port,
        };
        // The server writes down its process id when it listens.
        let listens = eventually_blocking("nginx listens or ends", PATIENCE, || {
            if server.child.try_wait().expect("wait").is_some() {
                return Ok(false);
            }
            let pid = std::fs::read_to_string(server.directory.path().join("nginx.pid"));
            match pid {
                Ok(pid) if pid.ends_with('\n') => Ok(true),
                _ => Err(server.errors()),
            }
        });
        assert!(
            listens || server.errors().contains("Address already in use"),
            "{}",
            server.errors()
        );
        listens.then_some(server)
    }

    /// Returns the home page.
    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("error.log")).unwrap_or_default()
    }

    /// Returns the requests that were answered so far, in the order in which their responses ended.
    pub fn requests(&self) -> Vec<Request> {
        let text =
            std::fs::read_to_string(self.directory.path().join("access.log")).expect("a log");
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        text[..whole].lines().map(request).collect()
    }

    /// Returns the requests as soon as they are as they have to be: a line is written after its response.
    #[track_caller]
    pub fn requests_when(&self, is_so: impl Fn(&[Request]) -> bool) -> Vec<Request> {
        eventually_blocking("the log of nginx", PATIENCE, || {
            let requests = self.requests();
            if is_so(&requests) {
                Ok(requests)
            } else {
                Err(requests.len())
            }
        })
    }
}

fn request(line: &str) -> Request {
    let fields: Vec<&str> = line.splitn(6, ' ').collect();
    let ended = milliseconds(fields[0]);
    Request {
        ended,
        began: ended - milliseconds(fields[1]),
        address: fields[2].to_owned(),
        host: fields[3].to_owned(),
        status: fields[4].parse().expect("a status"),
        path: fields[5].to_owned(),
    }
}

/// Seconds with three decimals, in milliseconds.
fn milliseconds(seconds: &str) -> i64 {
    seconds.replace('.', "").parse().expect("a time")
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The server may have ended by itself, which `wait` finds.
        self.child.kill().unwrap_or_default();
        self.child.wait().expect("an end");
        if std::thread::panicking() {
            let errors = self.errors();
            let from = errors.len().saturating_sub(4000);
            std::io::Write::write_all(
                &mut std::io::stderr(),
                errors.get(from..).unwrap_or(&errors).as_bytes(),
            )
            .unwrap_or_default();
        }
    }
}
