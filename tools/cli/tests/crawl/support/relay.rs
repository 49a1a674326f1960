//! A relay of TCP connections that keeps all bytes of both directions, and acts at a piece of them that a test has
//! chosen.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

/// Relays to one server until the test ends.
pub struct Relay {
    pub port: u16,
    connections: Arc<Mutex<Vec<Connection>>>,
    trigger: Arc<Mutex<Option<Trigger>>>,
}

/// An act, and the number of pieces until it is due.
struct Trigger {
    left: usize,
    act: Box<dyn FnOnce() + Send>,
}

/// The bytes of a connection: to the server, and from it.
type Connection = [Arc<Mutex<Vec<u8>>>; 2];

impl Relay {
    /// Begins to relay to a port of 127.0.0.1.
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let port = listener.local_addr().expect("an address").port();
        let connections: Arc<Mutex<Vec<Connection>>> = Arc::default();
        let trigger: Arc<Mutex<Option<Trigger>>> = Arc::default();
        let kept = Arc::clone(&connections);
        let set = Arc::clone(&trigger);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.expect("a connection");
                // Where no server listens, the client learns it from the end of its connection.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                let connection = Connection::default();
                kept.lock().push(connection.clone());
                let [up, down] = connection;
                let pairs = [(&client, &server, up), (&server, &client, down)];
                for (from, to, log) in pairs {
                    let from = from.try_clone().expect("clone");
                    let to = to.try_clone().expect("clone");
                    let trigger = Arc::clone(&set);
                    std::thread::spawn(move || pass(from, to, &log, &trigger));
                }
            }
        });
        Self {
            port,
            connections,
            trigger,
        }
    }

    /// Returns the home page.
    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Acts when that many pieces more have arrived from either side, before the last one is passed on. Nothing else is
    /// passed on meanwhile.
    pub fn after(&self, left: usize, act: impl FnOnce() + Send + 'static) {
        let act = Box::new(act);
        *self.trigger.lock() = Some(Trigger { left, act });
    }

    /// Writes the bytes that went through so far: `N.up` and `N.down` for each connection.
    pub fn save(&self, folder: &Path) {
        let connections = self.connections.lock().clone();
        for (number, connection) in connections.iter().enumerate() {
            for (log, end) in connection.iter().zip(["up", "down"]) {
                let bytes = log.lock();
                std::fs::write(folder.join(format!("{number}.{end}")), &*bytes).expect("write");
            }
        }
    }
}

/// Passes bytes on until one of the sides ends. They are kept before they are passed on: what was received is in the
/// log.
fn pass(
    mut from: TcpStream,
    mut to: TcpStream,
    log: &Mutex<Vec<u8>>,
    trigger: &Mutex<Option<Trigger>>,
) {
    let mut buffer = vec![0; 64 << 10];
    // An end by a reset is an end.
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        log.lock().extend(&buffer[..count]);
        let mut set = trigger.lock();
        if let Some(trigger) = set.as_mut() {
            trigger.left = trigger.left.saturating_sub(1);
        }
        if let Some(trigger) = set.take_if(|trigger| trigger.left == 0) {
            (trigger.act)();
        }
        drop(set);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The other side may have gone before.
    to.shutdown(Shutdown::Write).unwrap_or_default();
    from.shutdown(Shutdown::Read).unwrap_or_default();
}
