//! The means that both ends of a call share: mutual TLS, roles, channels, servers, status.
//!
//! Owns the lock on every door of the archive. No RPC is served without a client certificate of the environment's
//! own authority, and no call reaches a handler unless a rule names a role that this certificate carries.
//!
//! The rooms in reading order:
//!
//! - [`pki`] makes an environment's authority, its certificates and its list of revoked ones; `pem` reads them.
//! - [`role`], [`identity`]: who the peer is; [`rules`]: what that peer may call.
//! - [`tls`]: the certificate of this end, exchanged without a restart; [`verify`]: the server that a client wants.
//! - [`mod@serve`], [`mod@connect`], [`limits`], `settings`: servers and channels; nothing waits without end. `accept`
//!   takes connections, `guard` holds each call against the rules, `callers` counts the calls of each, `refusal` those
//!   that were refused.
//! - [`browser`]: the one door without client certificates, for browsers; its certificates are chosen by host.
//! - [`answers`], [`patience`]: answers to callers and browsers that may not read them; `page` bounds the messages of a
//!   long answer; [`idle`], `pace`, [`invalid`], [`text`], [`kind`]: streams that stall or are too slow, messages that are wrong, texts fit for
//!   people, errors that keep their kind; `status` carries the kind over the wire, and `call_error` is such an error
//!   away from it; `blocking` runs work that blocks.
//! - [`steps`], [`peer`]: the client's end: answers that come one by one, and the words for a call that failed.
//!
//! Not promised: anything about the meaning of a call. Of the workspace the crate knows the model alone; it writes no
//! file and starts no detached task of its own.
//!
//! ```
//! use archive_rpc::{Grant, Role, Rules};
//!
//! let rules = Rules::new().allow_call("/holdfast.archive.v1.Access/Get", &[Role::Reader]);
//! assert_eq!(rules.missing_paths(["/holdfast.archive.v1.Access/Put"]), ["/holdfast.archive.v1.Access/Put"]);
//! assert_eq!("officer/anna".parse::<Grant>().unwrap().role(), Role::Officer);
//! ```

#![warn(missing_docs)]

mod accept;
pub mod answers;
mod blocking;
pub mod browser;
mod call_error;
mod callers;
pub mod connect;
mod guard;
pub mod identity;
pub mod idle;
pub mod invalid;
pub mod kind;
pub mod limits;
mod pace;
mod page;
pub mod patience;
pub mod peer;
mod pem;
pub mod pki;
mod refusal;
pub mod role;
pub mod rules;
pub mod serve;
pub mod settings;
mod status;
pub mod steps;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod tls;
pub mod verify;

pub use answers::{AnswerStream, Answers};
pub use blocking::run_blocking;
pub use browser::{BrowserAcceptor, BrowserError, BrowserOptions, BrowserStream, SiteError};
pub use call_error::CallError;
pub use connect::{ConnectError, connect_channel, connect_lazy};
pub use identity::{Identity, InvalidIdentity};
pub use idle::IdleTimeout;
pub use invalid::InvalidMessage;
pub use kind::CallErrorKind;
pub use limits::RpcLimits;
pub use pace::LeastRate;
pub use page::Page;
pub use patience::PatientWriter;
pub use peer::Peer;
pub use pki::{CertificateAuthority, IssuedCertificate, PkiError, Serial, Validity};
pub use refusal::RefusalKind;
pub use role::{Grant, InvalidGrant, InvalidRole, Role};
pub use rules::{Rules, rpc_paths};
pub use serve::{DrainOutcome, ServeError, Server, Services, bind_address};
pub use settings::RpcSettings;
pub use steps::{CallFailure, CallSteps, StepReader, StepStream};
pub use tls::{CredentialFile, CredentialFiles, CredentialPem, Credentials, CredentialsError};
pub use verify::ExpectedIdentity;
