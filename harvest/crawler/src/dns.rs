//! The addresses of hosts, with the answer of the name server as it is archived.
//!
//! Owns the question to the name server and the text of its answer (`text/dns`: the time with 14 digits, then a line
//! for each resource record, as in Heritrix' `dns:` records; WARC 1.1 §6.4.4). Does not decide which addresses may be
//! connected to, and does not remember: its owner does, as long as the answer holds.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use archive_formats::date::Stamp;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig,
};
use hickory_resolver::lookup_ip::LookupIp;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError as NameError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::Name;
use jiff::Timestamp;

/// The shortest time that an answer holds, whatever the server says.
const SHORTEST: Duration = Duration::from_mins(1);

/// The longest time that an answer holds.
const LONGEST: Duration = Duration::from_hours(24);

/// The addresses of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsAnswer {
    /// The addresses, in the order of the answer.
    pub addresses: Vec<IpAddr>,
    /// The block of the `dns:` record.
    pub text: String,
    /// The time for which the answer holds.
    pub holds: Duration,
}

/// The reason why there is no address.
#[derive(Debug, thiserror::Error)]
pub enum DnsError {
    /// The name server knows no address of the host.
    #[error("the name server knows no address of {0}")]
    NoAddress(String),
    /// The name server cannot be reached, or fails.
    #[error("cannot ask for the address of {host}: {source}")]
    Failed {
        /// The host whose address was asked for.
        host: String,
        /// The error of the resolver.
        source: NetError,
    },
}

impl DnsError {
    /// Returns whether nobody has answered: a code of failure is an answer.
    pub const fn is_silence(&self) -> bool {
        match self {
            Self::NoAddress(_) => false,
            Self::Failed { source, .. } => !matches!(source, NetError::Dns(_)),
        }
    }
}

/// A client of name servers.
///
/// ```no_run
/// use harvest_crawler::dns::{DnsError, DnsResolver};
/// use jiff::Timestamp;
///
/// /// Prints the addresses of a host.
/// async fn tell(resolver: &DnsResolver, host: &str) -> Result<(), DnsError> {
///     let answer = resolver.resolve_host(host, Timestamp::now()).await?;
///     println!("{:?} for {:?}", answer.addresses, answer.holds);
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct DnsResolver {
    /// The resolvers for the addresses of version 4, and for those of version 6.
    resolvers: [TokioResolver; 2],
    server: Option<IpAddr>,
}

impl std::fmt::Debug for DnsResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DnsResolver")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl DnsResolver {
    /// Asks these name servers, by UDP and TCP; without any those of the machine (`/etc/resolv.conf`, `/etc/hosts`).
    ///
    /// # Errors
    ///
    /// [`NetError`] if the settings of the machine cannot be read.
    pub fn new(servers: &[SocketAddr]) -> Result<Self, NetError> {
        Ok(Self {
            resolvers: [
                resolver(servers, LookupIpStrategy::Ipv4Only)?,
                resolver(servers, LookupIpStrategy::Ipv6Only)?,
            ],
            server: match servers {
                [server] => Some(server.ip()),
                _ => None,
            },
        })
    }

    /// Returns the only name server that is asked; `None`: several, or those of the machine.
    pub const fn name_server(&self) -> Option<IpAddr> {
        self.server
    }

    /// Asks for the addresses of a host. `now`: the time that the record bears.
    ///
    /// # Errors
    ///
    /// [`DnsError::NoAddress`] if the answer has no address, [`DnsError::Failed`] if there is no answer.
    pub async fn resolve_host(&self, host: &str, now: Timestamp) -> Result<DnsAnswer, DnsError> {
        // With a dot at its end no domain of this machine is tried behind it.
        let name = format!("{}.", host.trim_end_matches('.'));
        if Name::from_utf8(&name).is_err() {
            return Err(DnsError::NoAddress(host.to_owned()));
        }
        let mut failure = None;
        for resolver in &self.resolvers {
            match resolver.lookup_ip(name.as_str()).await {
                Ok(found) if found.iter().next().is_some() => return Ok(answer(&found, now)),
                Ok(_) => {}
                Err(source) => match absence(&source) {
                    Some(ResponseCode::NoError) => {}
                    // The name does not exist, whatever is asked of it.
                    Some(_) => break,
                    None => failure = failure.or(Some(source)),
                },
            }
        }
        // That one kind of addresses is not there says nothing of the kind that could not be asked for.
        let host = host.to_owned();
        Err(match failure {
            Some(source) => DnsError::Failed { host, source },
            None => DnsError::NoAddress(host),
        })
    }
}

/// Returns the code with which a name server says that there is no address; `None` if it says something else, or
/// nothing.
fn absence(error: &NetError) -> Option<ResponseCode> {
    let NetError::Dns(NameError::NoRecordsFound(said)) = error else {
        return None;
    };
    let code = said.response_code;
    matches!(code, ResponseCode::NoError | ResponseCode::NXDomain).then_some(code)
}

fn resolver(servers: &[SocketAddr], strategy: LookupIpStrategy) -> Result<TokioResolver, NetError> {
    let mut builder = if servers.is_empty() {
        TokioResolver::builder_tokio()?
    } else {
        let servers = servers.iter().map(|server| {
            let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
            let connections = connections.map(|mut connection| {
                connection.port = server.port();
                connection
            });
            NameServerConfig::new(server.ip(), true, connections.to_vec())
        });
        let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
        TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
    };
    let options = builder.options_mut();
    options.ip_strategy = strategy;
    options.preserve_intermediates = true;
    builder.build()
}

/// Returns the addresses that a name server has named, with the text of its answer.
fn answer(found: &LookupIp, now: Timestamp) -> DnsAnswer {
    let mut lines = vec![Stamp::from_time(now).to_string()];
    let mut seconds = u32::MAX;
    for record in found.as_lookup().answers() {
        seconds = seconds.min(record.ttl);
        let kind = record.record_type();
        let name = &record.name;
        let class = record.dns_class;
        let data = &record.data;
        lines.push(format!("{name}\t{}\t{class}\t{kind}\t{data}", record.ttl));
    }
    let holds = Duration::from_secs(u64::from(seconds));
    DnsAnswer {
        addresses: found.iter().collect(),
        text: lines.join("\n") + "\n",
        holds: holds.clamp(SHORTEST, LONGEST),
    }
}
