//! `holdfast pki`: an environment's own certificate authority, as plain files in a directory.
//!
//! ```text
//! DIR/authority.pem  authority.key    the authority; the key is the secret of the whole environment
//! DIR/revoked.pem                     the list of revoked certificates
//! DIR/issued/SERIAL.json              what was issued to whom, so that it can be revoked by name
//! ```

pub(super) mod directory;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use archive_daemon::Clock;
use archive_rpc::{CertificateAuthority, Grant, PkiError, Validity};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};

use self::directory::{Pki as Directory, Record, check_free, write_new};

/// Issue and revoke the certificates of an environment
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast pki init /secure/pki --environment archive.example.org
  holdfast pki issue --dir /secure/pki node/kb-3 --dns kb-3.example.org -o /tmp/kb-3
  holdfast pki revoke --dir /secure/pki node/kb-3")]
pub(crate) enum Pki {
    Init(Init),
    Issue(Issue),
    Revoke(Revoke),
}

/// Make the certificate authority of an environment
///
/// The private key of the authority can grant every role in the environment: keep the directory off the machines of the
/// archive, and a copy of it in a safe. The exit code is 5 if the directory has an authority already.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast pki init /secure/pki --environment archive.example.org")]
pub(crate) struct Init {
    /// Output directory of its files; created if it does not exist
    dir: PathBuf,
    /// The environment, which is in every certificate: `spiffe://ENVIRONMENT/ROLE/NAME`
    #[arg(long, value_name = "NAME", default_value = "holdfast.local")]
    environment: String,
    /// Validity of the authority, in days
    #[arg(long, value_name = "DAYS", default_value_t = 7300)]
    days: u32,
}

/// Issue a certificate for a part or a person, with a fresh private key
///
/// One certificate may carry several roles; they add up. Parts have the roles repository, monitor (named after its
/// replica), node (named as in its settings; a checksum replica is a node and a monitor), index and viewer. People have
/// harvester, reader, researcher, officer, custodian and operator. The exit code is 5 if a file of that name exists.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast pki issue --dir /secure/pki node/kb-3 --dns kb-3.example.org -o /tmp/kb-3
  holdfast pki issue --dir /secure/pki officer/anna operator/anna --days 90 -o /tmp/anna")]
pub(crate) struct Issue {
    /// The directory of the authority, as `holdfast pki init` made it
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The roles that it carries, and the name of its holder in each
    #[arg(required = true, value_name = "ROLE/NAME")]
    grants: Vec<Grant>,
    /// A host name or IP address, for tools that check it; Holdfast checks role and name; may be given several times
    #[arg(long, value_name = "NAME")]
    dns: Vec<String>,
    /// Validity of the certificate, in days
    #[arg(long, value_name = "DAYS", default_value_t = 365)]
    days: u32,
    /// Output directory of its files; created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

/// Revoke certificates; this cannot be undone
///
/// Writes the list of revoked certificates anew. Copy it to where `rpc.revoked` of each part says: the part refuses
/// these certificates as soon as it has the list. The exit code is 2 if the directory has no such certificate.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast pki revoke --dir /secure/pki officer/anna
  holdfast pki revoke --dir /secure/pki 4f1d0c93a2b8e7d65a10c4f2")]
pub(crate) struct Revoke {
    /// The directory of the authority, as `holdfast pki init` made it
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// A serial number, ROLE/NAME or NAME; every certificate that carries it is revoked
    #[arg(value_name = "SERIAL|NAME")]
    what: String,
}

/// The files that were made, for programs.
#[derive(Debug, Serialize)]
struct CreatedAuthority<'a> {
    environment: &'a str,
    #[serde(serialize_with = "tools_terminal::shown_path::one")]
    authority: PathBuf,
    #[serde(serialize_with = "tools_terminal::shown_path::one")]
    key: PathBuf,
    #[serde(serialize_with = "tools_terminal::shown_path::one")]
    revoked: PathBuf,
    until: Timestamp,
}

/// The certificate that was issued, for programs.
#[derive(Debug, Serialize)]
struct IssuedCertificate<'a> {
    #[serde(flatten)]
    record: &'a Record,
    #[serde(serialize_with = "tools_terminal::shown_path::list")]
    files: [PathBuf; 3],
}

impl Pki {
    pub(crate) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let now = Clock::system_clock().now();
        match self {
            Self::Init(init) => init.run(context, now),
            Self::Issue(issue) => issue.run(context, now),
            Self::Revoke(revoke) => revoke.run(context, now),
        }
    }
}

/// Returns the validity from an hour ago, so that a clock that is a little slow does not refuse a fresh certificate.
fn validity(now: Timestamp, days: u32) -> Validity {
    let now = SystemTime::from(now);
    Validity {
        not_before: now - Duration::from_hours(1),
        not_after: now + Duration::from_hours(24 * u64::from(days)),
    }
}

fn time(time: SystemTime) -> Result<Timestamp, Failure> {
    let whole = Timestamp::try_from(time)
        .and_then(|time| Timestamp::from_second(time.as_second()))
        .map_err(|error| Failure::wrong_usage(format!("--days: {error}")))?;
    Ok(whole)
}

fn refused(error: &PkiError) -> Failure {
    match error {
        PkiError::Environment(_)
        | PkiError::Validity
        | PkiError::NoGrant
        | PkiError::Host(_)
        | PkiError::Serial(_) => Failure::wrong_usage(error.to_string()),
        PkiError::Unreadable { .. } | PkiError::OtherKey | PkiError::OtherList => {
            Failure::new(Exit::Settings, error.to_string())
        }
        PkiError::Signing(_) => Failure::because_failed(error.to_string()),
    }
}

impl Init {
    fn run(self, context: &CommandContext, now: Timestamp) -> Result<Exit, Failure> {
        let validity = validity(now, self.days);
        let authority = CertificateAuthority::create_authority(&self.environment, validity)
            .map_err(|error| refused(&error))?;
        let empty = authority.revoke_serials(None, &[], now.into(), validity.not_after);
        let empty = empty.map_err(|error| refused(&error))?;
        directory::make_directory(&self.dir)?;
        let at = |name: &str| self.dir.join(name);
        let made = CreatedAuthority {
            environment: authority.environment(),
            authority: at("authority.pem"),
            key: at("authority.key"),
            revoked: at("revoked.pem"),
            until: time(validity.not_after)?,
        };
        for path in [&made.authority, &made.key, &made.revoked, &at("issued")] {
            check_free(path)?;
        }
        write_new(&made.key, authority.key().as_bytes(), true)?;
        write_new(&made.authority, authority.certificate().as_bytes(), false)?;
        write_new(&made.revoked, empty.as_bytes(), false)?;
        directory::make_directory(&at("issued"))?;
        if context.output.is_json() {
            context.output.write_document(&made)?;
            return Ok(Exit::Done);
        }
        let text = format!(
            "the authority of {}, valid until {}\n\
             {}  its certificate: every part and every client needs a copy\n\
             {}  the list of revoked certificates: every part needs a copy\n\
             {}  its private key: keep it here, and a copy in a safe; it goes to no machine of the archive\n\
             Next: holdfast pki issue --dir {} ROLE/NAME -o DIR",
            made.environment,
            made.until,
            made.authority.display(),
            made.revoked.display(),
            made.key.display(),
            self.dir.display()
        );
        context.output.write_line(&text)?;
        Ok(Exit::Done)
    }
}

impl Issue {
    fn run(self, context: &CommandContext, now: Timestamp) -> Result<Exit, Failure> {
        let mut persons = self
            .grants
            .iter()
            .filter(|grant| grant.role().is_personal());
        if let Some(person) = persons.next()
            && let Some(other) = persons.find(|other| other.name() != person.name())
        {
            let said = format!(
                "{person} and {other} are two persons, and a certificate is of one: issue one for each"
            );
            return Err(Failure::wrong_usage(said));
        }
        let pki = Directory::open(&self.dir)?;
        let hosts: Vec<&str> = self.dns.iter().map(String::as_str).collect();
        let validity = validity(now, self.days);
        let issued = pki
            .authority
            .issue_certificate(&self.grants, &hosts, validity);
        let issued = issued.map_err(|error| refused(&error))?;
        let first = self.grants.first();
        let base = first.map(|grant| format!("{}-{}", grant.role(), grant.name()));
        let base = base.unwrap_or_default();
        let certificate = self.output.join(format!("{base}.pem"));
        let key = self.output.join(format!("{base}.key"));
        let authorities = self.output.join("authority.pem");
        for path in [&certificate, &key] {
            check_free(path)?;
        }
        let text = pki.authority.certificate();
        let has_authority = directory::is_there(&authorities, text.as_bytes())?;
        let until = time(validity.not_after)?;
        let record = Record::describe_issued(&issued, &self.grants, &hosts, now, until);
        // Known before it exists: what was handed out can be revoked.
        pki.record_certificate(&record)?;
        directory::make_directory(&self.output)?;
        write_new(&key, issued.key.as_bytes(), true)?;
        write_new(&certificate, issued.certificate.as_bytes(), false)?;
        if !has_authority {
            write_new(&authorities, text.as_bytes(), false)?;
        }
        if context.output.is_json() {
            let files = [certificate, key, authorities];
            let record = &record;
            context
                .output
                .write_document(&IssuedCertificate { record, files })?;
            return Ok(Exit::Done);
        }
        let shown = certificate.display();
        let secret = key.display();
        let authorities = authorities.display();
        let is_part = first.is_some_and(|grant| !grant.role().is_personal());
        let place = if is_part {
            "Copy the three to the machine of that part, and name them in its settings:\n  [rpc]"
        } else {
            "Copy the three to the machine of that person, and name them in the client file:"
        };
        let text = format!(
            "issued {} until {}, serial {}\n{shown}  its certificate\n{secret}  its private key; nobody else may read it\n\
             {authorities}  the authority's certificate\n{place}\n  certificate = \"{base}.pem\"\n  key = \"{base}.key\"\n  \
             authorities = \"authority.pem\"\nThen remove the key from here.",
            record.grants.join(", "),
            record.until,
            record.serial
        );
        context.output.write_line(&text)?;
        Ok(Exit::Done)
    }
}

impl Revoke {
    fn run(self, context: &CommandContext, now: Timestamp) -> Result<Exit, Failure> {
        let pki = Directory::open(&self.dir)?;
        let path = self.dir.join("revoked.pem");
        let previous = directory::read_text(&path)?;
        let known = previous
            .as_deref()
            .map(|list| pki.authority.revoked_in(list));
        let known = known.transpose().map_err(|error| refused(&error))?;
        let known = known.unwrap_or_default();
        let found = pki.find_certificates(&self.what)?;
        let serials = found.matched_serials(&self.what, &self.dir)?;
        let fresh: Vec<_> = serials
            .iter()
            .filter(|serial| !known.contains_key(serial))
            .cloned()
            .collect();
        // Nobody enforces the time of the next list: one that is out of date still revokes.
        let next = SystemTime::from(now) + Duration::from_hours(24 * 365);
        let list = pki
            .authority
            .revoke_serials(previous.as_deref(), &fresh, now.into(), next);
        let list = list.map_err(|error| refused(&error))?;
        directory::replace_list(&path, list.as_bytes())?;
        let total = known.len() + fresh.len();
        if context.output.is_json() {
            let revoked: Vec<String> = serials.iter().map(ToString::to_string).collect();
            context.output.write_document(&serde_json::json!({
                "revoked": revoked,
                "new": fresh.len(),
                "total": total,
                "list": path.display().to_string(),
            }))?;
            return Ok(Exit::Done);
        }
        for serial in &serials {
            let was = if fresh.contains(serial) {
                ""
            } else {
                ", as it was already"
            };
            let who = found.holder_of(serial);
            context
                .output
                .write_line(&format!("revoked {serial}{who}{was}"))?;
        }
        context.output.write_line(&copy_list(&path, total))?;
        Ok(Exit::Done)
    }
}

fn copy_list(path: &Path, total: usize) -> String {
    format!(
        "{}  the list, now of {total}\nCopy it to every machine of the environment, over the file that `revoked` in its [rpc] \
         section names; parts read it again by themselves.",
        path.display()
    )
}
