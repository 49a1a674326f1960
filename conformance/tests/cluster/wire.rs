//! The wire between two parts: one that can be cut, held, slowed and corrupted, and a liar who ends TLS on both sides.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use archive_rpc::CredentialPem;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The mark that a liar looks for in the bytes that pass.
pub(crate) const MARK: &[u8; 16] = b"~holdfast-mark~!";

/// Never, of a number that is counted down.
const NEVER: i64 = i64::MAX;

/// The number of bytes in each turn without a limit.
const FAST: usize = usize::MAX;

/// The time between two moments in which a slow wire lets something pass.
const TURN: Duration = Duration::from_millis(50);

/// The number of turns in a second.
const TURNS: usize = 20;

/// The ways of a wire in which nothing passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Nothing passes either way.
    Both,
    /// The bytes of the caller do not pass; those of the called do.
    Requests,
    /// The bytes of the called do not pass; it hears everything.
    Answers,
}

/// A wire to one address. Dropped, it is cut.
pub(crate) struct Wire {
    address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

struct State {
    /// Bytes that went from the caller to the called.
    carried: AtomicU64,
    /// After how many more of them every connection is cut, once.
    cut: AtomicI64,
    /// After how many more of them one bit is flipped, once.
    flip: AtomicI64,
    /// The number of marks that a liar still changes, on the way to the called and back.
    lies: [AtomicI64; 2],
    cuts: watch::Sender<u64>,
    /// After how many more of them the called is heard no more.
    mute: AtomicI64,
    /// After how many more bytes of its own the called is heard no more.
    most: AtomicI64,
    /// The number of connections so far.
    connections: AtomicU64,
    /// Whether nothing passes, on the way to the called and back.
    held: [watch::Sender<bool>; 2],
    /// The number of bytes of each connection that pass in each turn, either way.
    pace: AtomicUsize,
}

/// Both ends of a liar's TLS.
#[derive(Clone)]
struct Ends {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

impl Wire {
    /// A wire that carries whatever comes.
    pub(crate) async fn to(target: &str) -> Self {
        Self::lay(target, None).await
    }

    /// A liar: to the caller it is `as_called`, to the called it is `as_asker`.
    pub(crate) async fn lying(
        target: &str,
        as_called: &CredentialPem,
        as_asker: &CredentialPem,
    ) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = |pem: &CredentialPem| {
            let chain = CertificateDer::pem_slice_iter(pem.certificate.as_bytes());
            let key = PrivateKeyDer::from_pem_slice(pem.key.as_bytes()).unwrap();
            (chain.map(Result::unwrap).collect::<Vec<_>>(), key)
        };
        let ((certificates, key), h2) = (chain(as_called), vec![b"h2".to_vec()]);
        let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth();
        let mut server = server.with_single_cert(certificates, key).unwrap();
        server.alpn_protocols.clone_from(&h2);
        let mut roots = rustls::RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(as_asker.authorities.as_bytes());
        roots.add(authority.unwrap()).unwrap();
        let (certificates, key) = chain(as_asker);
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots);
        let mut client = client.with_client_auth_cert(certificates, key).unwrap();
        client.alpn_protocols = h2;
        let ends = Ends {
            acceptor: TlsAcceptor::from(Arc::new(server)),
            connector: TlsConnector::from(Arc::new(client)),
        };
        Self::lay(target, Some(ends)).await
    }

    async fn lay(target: &str, ends: Option<Ends>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            carried: AtomicU64::new(0),
            cut: AtomicI64::new(NEVER),
            flip: AtomicI64::new(NEVER),
            lies: [AtomicI64::new(0), AtomicI64::new(0)],
            mute: AtomicI64::new(NEVER),
            most: AtomicI64::new(NEVER),
            connections: AtomicU64::new(0),
            cuts: watch::Sender::new(0),
            held: [watch::Sender::new(false), watch::Sender::new(false)],
            pace: AtomicUsize::new(FAST),
        });
        let of = Arc::clone(&state);
        let target = target.to_owned();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((caller, _)) = listener.accept().await {
                of.connections.fetch_add(1, Ordering::Relaxed);
                let state = Arc::clone(&of);
                let target = target.clone();
                let ends = ends.clone();
                connections.spawn(async move {
                    let mut cuts = state.cuts.subscribe();
                    tokio::select! {
                        _cut = cuts.changed() => {}
                        _ended = connect(&state, caller, &target, ends) => {}
                    }
                });
            }
        });
        Self {
            address,
            state,
            _tasks: tasks,
        }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns the number of bytes that went from the caller to the called.
    pub(crate) fn carried(&self) -> u64 {
        self.state.carried.load(Ordering::Relaxed)
    }

    /// Cuts every connection once that number of further bytes went to the called.
    pub(crate) fn cut_after(&self, bytes: i64) {
        self.state.cut.store(bytes, Ordering::Relaxed);
    }

    /// Flips one bit once that number of further bytes went to the called.
    pub(crate) fn flip_after(&self, bytes: i64) {
        self.state.flip.store(bytes, Ordering::Relaxed);
    }

    /// Nothing passes any more, in either direction; nothing is closed.
    pub(crate) fn hold(&self) {
        self.hold_only(Silence::Both);
    }

    /// Nothing passes any more that way, and everything the other way; nothing is closed.
    pub(crate) fn hold_only(&self, silence: Silence) {
        let [there, back] = &self.state.held;
        there.send_replace(silence != Silence::Answers);
        back.send_replace(silence != Silence::Requests);
    }

    /// Once that number of further bytes went to the called, nothing that it says passes any more.
    pub(crate) fn mute_after(&self, bytes: i64) {
        self.state.mute.store(bytes, Ordering::Relaxed);
    }

    /// Once that number of further bytes came back from the called, nothing more that it says passes.
    pub(crate) fn mute_after_answers(&self, bytes: i64) {
        self.state.most.store(bytes, Ordering::Relaxed);
    }

    /// Returns the number of connections so far.
    pub(crate) fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Everything passes again.
    pub(crate) fn release(&self) {
        for held in &self.state.held {
            held.send_replace(false);
        }
    }

    /// Lets that number of bytes a second pass on each connection, either way.
    pub(crate) fn slow(&self, bytes: usize) {
        let pace = (bytes / TURNS).max(1);
        self.state.pace.store(pace, Ordering::Relaxed);
    }

    /// Everything passes at once again, also what is on its way.
    pub(crate) fn quick(&self) {
        self.state.pace.store(FAST, Ordering::Relaxed);
    }

    /// Changes that number of marks on the way to the called, and on the way back.
    pub(crate) fn lie(&self, there: i64, back: i64) {
        let [there_left, back_left] = &self.state.lies;
        there_left.store(there, Ordering::Relaxed);
        back_left.store(back, Ordering::Relaxed);
    }

    /// Returns the number of marks that are still to be changed.
    pub(crate) fn untold(&self) -> [i64; 2] {
        self.state
            .lies
            .each_ref()
            .map(|left| left.load(Ordering::Relaxed))
    }
}

async fn connect(
    state: &State,
    near: TcpStream,
    target: &str,
    ends: Option<Ends>,
) -> io::Result<()> {
    let far = TcpStream::connect(target).await?;
    let Some(Ends {
        acceptor,
        connector,
    }) = ends
    else {
        return both_ways(state, near, far).await;
    };
    let near = acceptor.accept(near).await?;
    let name = ServerName::try_from("127.0.0.1").map_err(io::Error::other)?;
    let far = connector.connect(name, far).await?;
    both_ways(state, near, far).await
}

async fn both_ways(
    state: &State,
    near: impl AsyncRead + AsyncWrite,
    far: impl AsyncRead + AsyncWrite,
) -> io::Result<()> {
    let (near_reads, near_writes) = tokio::io::split(near);
    let (far_reads, far_writes) = tokio::io::split(far);
    tokio::select! {
        ended = pump(state, near_reads, far_writes, 0) => ended,
        ended = pump(state, far_reads, near_writes, 1) => ended,
    }
}

async fn pump(
    state: &State,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    way: usize,
) -> io::Result<()> {
    let mut held = state.held[way].subscribe();
    let mut block = vec![0; 32 * 1024];
    loop {
        let read = from.read(&mut block).await?;
        if read == 0 {
            return Ok(());
        }
        let bytes = &mut block[..read];
        if held.wait_for(|held| !held).await.is_err() {
            return Ok(());
        }
        lie(&state.lies[way], bytes);
        if way == 0 {
            state.carried.fetch_add(read as u64, Ordering::Relaxed);
            if is_due(&state.flip, read) {
                bytes[read / 2] ^= 1;
            }
            if is_due(&state.mute, read) {
                state.held[1].send_replace(true);
            }
            if is_due(&state.cut, read) {
                state.cuts.send_modify(|cuts| *cuts += 1);
                return Ok(());
            }
        } else if is_due(&state.most, read) {
            state.held[1].send_replace(true);
        }
        let mut rest = &*bytes;
        while !rest.is_empty() {
            let pace = state.pace.load(Ordering::Relaxed);
            let (now, later) = rest.split_at(pace.min(rest.len()));
            to.write_all(now).await?;
            to.flush().await?;
            rest = later;
            if pace != FAST {
                sleep(TURN).await;
            }
        }
    }
}

/// Counts down; whether it was just now that nothing was left.
fn is_due(left: &AtomicI64, read: usize) -> bool {
    let read = i64::try_from(read).unwrap();
    let next = |left: i64| (left != NEVER).then(|| if left > read { left - read } else { NEVER });
    let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    before.is_ok_and(|before| before <= read)
}

/// Changes the first mark in these bytes, if there are lies to be told.
fn lie(left: &AtomicI64, bytes: &mut [u8]) {
    if left.load(Ordering::Relaxed) > 0
        && let Some(at) = bytes.windows(MARK.len()).position(|part| part == MARK)
    {
        left.fetch_sub(1, Ordering::Relaxed);
        bytes[at] ^= 1;
    }
}
