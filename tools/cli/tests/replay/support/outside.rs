//! All that a browser could reach beside the hosts under test: a proxy that counts and refuses, a listener of TCP, and
//! a socket of UDP that says nothing.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// Hosts that Debian's Chromium asks by itself, whatever page it shows. No page of a test names one of them.
const BROWSERS_OWN: [&str; 5] = [
    "accounts.google.com",
    "clients2.google.com",
    "content-autofill.googleapis.com",
    "start.duckduckgo.com",
    "update.googleapis.com",
];

/// The time that a connection may take to say what it asks for.
const HEAD_TIME: Duration = Duration::from_secs(5);

/// A connection that has not said anything: a browser makes one when a page asks it to connect early.
const SILENT: &str = "a connection";

/// A contact with the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// `proxy`, `tcp` or `udp`.
    pub way: &'static str,
    /// The first line, or the datagram's sender.
    pub what: String,
}

impl Contact {
    fn is_browsers_own(&self) -> bool {
        let host = self.what.split(' ').nth(1).unwrap_or_default();
        let host = host.split_once("://").map_or(host, |(_, rest)| rest);
        let host = host.split(['/', ':']).next().unwrap_or_default();
        self.way == "proxy" && BROWSERS_OWN.contains(&host)
    }
}

/// The contacts by number: what is said later is written beside the right one, also after others were forgotten.
#[derive(Debug, Default)]
struct Log {
    next: usize,
    contacts: BTreeMap<usize, Contact>,
}

type Contacts = Arc<Mutex<Log>>;

/// The outside, until it is dropped.
pub struct Outside {
    contacts: Contacts,
    pub proxy: SocketAddr,
    pub tcp: SocketAddr,
    pub udp: SocketAddr,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Outside {
    /// Listens on three free ports of loopback.
    pub fn start() -> Self {
        let contacts = Contacts::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let (proxy, first) = listen("proxy", &contacts, &is_over);
        let (tcp, second) = listen("tcp", &contacts, &is_over);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let udp = socket.local_addr().expect("an address");
        let third = receive(socket, &contacts, &is_over);
        Self {
            contacts,
            proxy,
            tcp,
            udp,
            is_over,
            threads: vec![first, second, third],
        }
    }

    /// Returns the contacts so far, without those of the browser itself.
    pub fn contacts(&self) -> Vec<Contact> {
        let log = lock(&self.contacts);
        let contacts = log.contacts.values();
        contacts
            .filter(|contact| !contact.is_browsers_own())
            .cloned()
            .collect()
    }

    /// Checks that nothing was asked of the outside by a page that connects to no host early. A connection to the proxy
    /// that never said anything is then the browser's: it opens one for a request of its own, and sends that over
    /// another one.
    #[track_caller]
    pub fn check_quiet(&self) {
        let mut asked = self.contacts();
        asked.retain(|contact| contact.way != "proxy" || contact.what != SILENT);
        assert_eq!(asked, []);
    }

    /// Forgets the contacts so far.
    pub fn forget(&self) {
        lock(&self.contacts).contacts.clear();
    }

    /// Returns the number of contacts by UDP.
    pub fn datagrams(&self) -> usize {
        let contacts = self.contacts();
        contacts
            .iter()
            .filter(|contact| contact.way == "udp")
            .count()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for address in [self.proxy, self.tcp] {
            // The connection wakes the thread that accepts; whether anybody is there is all the same.
            TcpStream::connect(address).map(drop).unwrap_or_default();
        }
        for thread in self.threads.drain(..) {
            thread.join().expect("the outside ends");
        }
    }
}

fn lock(contacts: &Contacts) -> MutexGuard<'_, Log> {
    contacts.lock()
}

/// Writes down a contact, and returns its number.
fn put(contacts: &Contacts, contact: Contact) -> usize {
    let mut log = lock(contacts);
    let number = log.next;
    log.next += 1;
    log.contacts.insert(number, contact);
    number
}

fn listen(
    way: &'static str,
    contacts: &Contacts,
    is_over: &Arc<AtomicBool>,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("an address");
    let contacts = Arc::clone(contacts);
    let is_over = Arc::clone(is_over);
    let thread = std::thread::spawn(move || {
        for stream in listener.incoming() {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let contacts = Arc::clone(&contacts);
            if let Ok(stream) = stream {
                std::thread::spawn(move || refuse(stream, way, &contacts));
            }
        }
    });
    (address, thread)
}

/// Writes down what a connection asks for, and refuses it. It counts before it has said anything.
fn refuse(mut stream: TcpStream, way: &'static str, contacts: &Contacts) {
    let own = Contact {
        way,
        what: SILENT.to_owned(),
    };
    let at = put(contacts, own);
    stream.set_read_timeout(Some(HEAD_TIME)).expect("a limit");
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") && head.len() < 65_536 {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(length) => head.extend_from_slice(&piece[..length]),
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    if !line.is_empty() {
        let line = String::from_utf8_lossy(line).into_owned();
        if let Some(own) = lock(contacts).contacts.get_mut(&at) {
            own.what = line;
        }
    }
    let answer = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    // The browser may have gone away.
    stream.write_all(answer).unwrap_or_default();
}

fn receive(socket: UdpSocket, contacts: &Contacts, is_over: &Arc<AtomicBool>) -> JoinHandle<()> {
    let limit = Some(Duration::from_millis(100));
    socket.set_read_timeout(limit).expect("a limit");
    let contacts = Arc::clone(contacts);
    let is_over = Arc::clone(is_over);
    std::thread::spawn(move || {
        let mut datagram = [0; 2048];
        while !is_over.load(Ordering::Relaxed) {
            if let Ok((length, sender)) = socket.recv_from(&mut datagram) {
                let what = format!("{length} bytes from {sender}");
                put(&contacts, Contact { way: "udp", what });
            }
        }
    })
}
