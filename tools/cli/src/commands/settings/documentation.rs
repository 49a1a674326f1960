//! The meaning of each setting, from the comments beside it: the comment that the compiler asks for is the manual.
//!
//! Owns the table of the sections that a file of each kind can have. A section at the top of a part's file that is not
//! in it fails a test; one within a section does only if `COMPLETE` sets it.

use archive_bitarchive::settings::{NodeBatchSettings, NodeSettings, ScrubSettings};
use archive_bitarchive::{AtticSettings, checksum};
use archive_client::{ClientFile, ClientIdentity, ClientLimits, Endpoints};
use archive_daemon::notify::SmtpSettings;
use archive_daemon::{DaemonSettings, NotifySettings};
use archive_monitor::MonitorSettings;
use archive_repository::{
    BatchSettings, CheckSettings, DrainSettings, RepairSettings, ReplicaSettings,
    RepositorySettings,
};
use archive_rpc::RpcSettings;
use documented::DocumentedFields;
use index_server::IndexSettings;
use viewer_web::settings::{
    AccessSettings, CollectionSettings, EmbargoSettings, NetworkSettings, PeriodSettings,
    ProxySettings, ReplaySettings, ViewerSettings, WebSettings,
};

use super::Kind;

/// The sections that the files of all parts have.
const DAEMON: Section = section::<DaemonSettings>("daemon");
const RPC: Section = section::<RpcSettings>("rpc");

const REPOSITORY: &[Section] = &[
    section::<archive_repository::Settings>(""),
    DAEMON,
    RPC,
    section::<RepositorySettings>("repository"),
    section::<NotifySettings>("notify"),
    section::<SmtpSettings>("notify.smtp"),
    section::<RepairSettings>("repair"),
    section::<CheckSettings>("checks"),
    section::<DrainSettings>("drain"),
    section::<BatchSettings>("batch"),
    section::<ReplicaSettings>("replica"),
];

const MONITOR: &[Section] = &[
    section::<archive_monitor::Settings>(""),
    DAEMON,
    RPC,
    section::<MonitorSettings>("monitor"),
];

const BITARCHIVE: &[Section] = &[
    section::<archive_bitarchive::Settings>(""),
    DAEMON,
    RPC,
    section::<NodeSettings>("bitarchive"),
    section::<ScrubSettings>("scrub"),
    section::<AtticSettings>("attic"),
    section::<NodeBatchSettings>("batch_node"),
];

const CHECKSUM_REPLICA: &[Section] = &[
    section::<checksum::Settings>(""),
    DAEMON,
    RPC,
    section::<checksum::ChecksumReplicaSettings>("checksum_replica"),
];

const INDEX: &[Section] = &[
    section::<index_server::Settings>(""),
    DAEMON,
    RPC,
    section::<IndexSettings>("index"),
];

const VIEWER: &[Section] = &[
    section::<viewer_web::Settings>(""),
    DAEMON,
    RPC,
    section::<ViewerSettings>("viewer"),
    section::<ReplaySettings>("replay"),
    section::<WebSettings>("web"),
    section::<ProxySettings>("proxy"),
    section::<AccessSettings>("access"),
    section::<NetworkSettings>("access.network"),
    section::<CollectionSettings>("collection"),
    section::<EmbargoSettings>("collection.embargo"),
    section::<PeriodSettings>("collection.embargo.newer"),
    section::<PeriodSettings>("collection.embargo.older"),
];

const CLIENT: &[Section] = &[
    section::<ClientFile>(""),
    section::<Endpoints>("endpoints"),
    section::<ClientLimits>("limits"),
    section::<ClientIdentity>("identity"),
];

/// A section with its keys, in the order in which they are declared.
struct Section {
    /// The names with dots between them; empty for the top of the file.
    path: &'static str,
    keys: &'static [&'static str],
    /// The comment of each key.
    comments: &'static [&'static str],
}

const fn section<T: DocumentedFields>(path: &'static str) -> Section {
    Section {
        path,
        keys: T::FIELD_NAMES,
        comments: T::FIELD_DOCS,
    }
}

impl Section {
    /// Returns each key with the lines of its comment.
    fn keys(&self) -> impl Iterator<Item = (&'static str, Vec<String>)> {
        let keys = self.keys.iter().zip(self.comments);
        keys.map(|(key, comment)| {
            // Links are of the documentation of the code.
            let plain = comment.replace("[`", "`").replace("`]", "`");
            (*key, plain.lines().map(str::to_owned).collect())
        })
    }

    /// Returns the comment of a key, each line as a comment of TOML.
    fn comment(&self, key: &str) -> Vec<String> {
        let found = self.keys().find(|(name, _)| *name == key);
        found.map_or_else(Vec::new, |(_, lines)| as_comment(&lines))
    }
}

/// Returns the TOML text with the comment of each key above it, and the keys and sections that are not set.
pub(super) fn document(kind: Kind, toml: &str) -> String {
    let sections = sections(kind);
    let set: Vec<&str> = toml.lines().filter_map(path_of).collect();
    let mut out = Vec::new();
    let mut path = "";
    let mut seen: Vec<&str> = Vec::new();
    for line in toml.lines() {
        if let Some(next) = path_of(line) {
            insert_unset(&mut out, unset(sections, path, &seen, &set));
            seen.clear();
            path = next;
            let (outer, key) = path.rsplit_once('.').unwrap_or(("", path));
            out.extend(comment(sections, outer, key));
        } else if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with(' ')) {
            out.extend(comment(sections, path, key));
            seen.push(key);
        }
        // A blank line before a section stands before its comment as well.
        out.push(line.to_owned());
    }
    insert_unset(&mut out, unset(sections, path, &seen, &set));
    out.join("\n") + "\n"
}

const fn sections(kind: Kind) -> &'static [Section] {
    match kind {
        Kind::Repository => REPOSITORY,
        Kind::Monitor => MONITOR,
        Kind::Bitarchive => BITARCHIVE,
        Kind::ChecksumReplica => CHECKSUM_REPLICA,
        Kind::Index => INDEX,
        Kind::Viewer => VIEWER,
        Kind::Client => CLIENT,
    }
}

fn find<'a>(sections: &'a [Section], path: &str) -> Option<&'a Section> {
    sections.iter().find(|section| section.path == path)
}

fn comment(sections: &[Section], path: &str, key: &str) -> Vec<String> {
    find(sections, path).map_or_else(Vec::new, |section| section.comment(key))
}

fn as_comment(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| format!("# {line}")).collect()
}

/// Returns the dotted path of the section that a line opens.
fn path_of(line: &str) -> Option<&str> {
    let header = line.strip_prefix('[')?;
    Some(header.trim_matches(|c| c == '[' || c == ']'))
}

/// Adds the lines about what is not set before the blank line that ends the section.
fn insert_unset(out: &mut Vec<String>, lines: Vec<String>) {
    let ends_blank = out.last().is_some_and(String::is_empty);
    let end = out.len() - usize::from(ends_blank);
    out.splice(end..end, lines);
}

/// Returns the keys of a section that are not set, and the sections within it that are not there, with all of their
/// keys.
fn unset(sections: &[Section], path: &str, seen: &[&str], set: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, comment) in find(sections, path).into_iter().flat_map(Section::keys) {
        let own = match path {
            "" => key.to_owned(),
            _ => format!("{path}.{key}"),
        };
        match find(sections, &own) {
            None if !seen.contains(&key) => {
                lines.extend(as_comment(&comment));
                lines.push(format!("# {key} is not set"));
            }
            Some(inner) if !set.iter().any(|section| is_within(section, &own)) => {
                lines.extend(as_comment(&comment));
                lines.push(format!("# [{own}] is not set; its keys:"));
                for (key, comment) in inner.keys() {
                    lines.push(format!("#   {key}: {}", comment.join(" ")));
                }
            }
            _ => {}
        }
    }
    lines
}

fn is_within(section: &str, path: &str) -> bool {
    let rest = section.strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use archive_daemon::settings::Sources;

    use super::*;

    /// Each section of the table is a key of the section around it. Fails if a path is misspelt or a key was renamed:
    /// the section would be printed without comments.
    #[test]
    fn sections_are_keys_of_their_outer_section() {
        for (kind, own) in Kind::ALL {
            let sections = sections(kind);
            assert!(find(sections, own).is_some(), "{kind:?}: [{own}]");
            for section in sections.iter().filter(|section| !section.path.is_empty()) {
                let (outer, key) = section.path.rsplit_once('.').unwrap_or(("", section.path));
                let outer = find(sections, outer).map(|outer| outer.keys);
                assert!(
                    outer.is_some_and(|keys| keys.contains(&key)),
                    "{kind:?}: [{}] is in no section: {outer:?}",
                    section.path
                );
            }
        }
    }

    /// Settings of each kind with every section that may be left out. Fails if a section or a key of it would be
    /// printed without its comment: add the section to the table.
    #[test]
    fn every_printed_section_and_key_has_a_comment() {
        for (kind, set) in COMPLETE {
            let rpc = RPC_KEYS.iter().filter(|_| kind != Kind::Client);
            let sources = Sources::from_set(rpc.chain(set).copied());
            let printed = kind.printed(&sources).unwrap();
            let text = document(kind, &printed);
            // All keys at the top of a part's file are sections: one that is printed as a key is not in the table.
            let mut top = text.lines().take_while(|line| path_of(line).is_none());
            assert!(
                kind == Kind::Client || !top.any(|line| line.ends_with(" is not set")),
                "{kind:?}: a section is not in the table\n{text}"
            );
            let lines: Vec<&str> = text.lines().collect();
            for (above, line) in lines.iter().zip(lines.iter().skip(1)) {
                let is_key = path_of(line).is_some() || line.contains(" = ");
                if is_key && !line.starts_with(['#', ' ']) {
                    assert!(above.starts_with('#'), "{kind:?}: {line}\n{text}");
                }
            }
        }
    }

    const RPC_KEYS: &[&str] = &[
        "rpc.listen=h:1",
        "rpc.certificate=c",
        "rpc.key=k",
        "rpc.authorities=a",
    ];

    /// The keys that have no default, and the sections that may be left out.
    const COMPLETE: [(Kind, &[&str]); 7] = [
        (
            Kind::Repository,
            &[
                r#"repository={archive="kb", data="d", signing_key="s", trust="t"}"#,
                r#"replica=[{id="one", kind="bitarchive", monitor="h:1"}]"#,
                r#"notify.smtp={server="m", from="a@example.org", to=["b@example.org"]}"#,
            ],
        ),
        (Kind::Monitor, &["monitor.replica=one"]),
        (
            Kind::Bitarchive,
            &[
                r#"bitarchive={node="one-1", replica="one", data="d", volumes=["v"], trust="t", monitor="h:1"}"#,
            ],
        ),
        (
            Kind::ChecksumReplica,
            &[r#"checksum_replica={node="one-1", replica="one", data="d", trust="t"}"#],
        ),
        (
            Kind::Index,
            &[r#"index={data="d", repository="h:1", trust="t"}"#],
        ),
        (
            Kind::Viewer,
            &[
                r#"viewer={repository="h:1", index="h:2", trust="t"}"#,
                r#"web={listen="127.0.0.1:1"}"#,
                r#"proxy={listen="127.0.0.1:2", data="p"}"#,
                r#"access={trusted_proxies=[], network=[{network="10.0.0.0/8", group="staff"}]}"#,
                r#"collection=[{name="a", embargo={newer={years=1}, older={days=1}}}]"#,
            ],
        ),
        (
            Kind::Client,
            &[
                "authorities=a",
                "trust=t",
                "certificate=c",
                "key=k",
                r#"endpoints={repository="h:1"}"#,
                r#"identity=[{role="officer", name="n", certificate="c", key="k"}]"#,
            ],
        ),
    ];

    /// Fails if a comment is printed above the key of another section, or if a value is changed.
    #[test]
    fn comments_stand_above_their_keys() {
        let toml = "[daemon]\nlog = \"info\"\n\n[rpc]\nlisten = \"h:1\"\ncertificate = \"c\"\nkey = \"k\"\n\
                    authorities = \"a\"\n\n[monitor]\nreplica = \"one\"\nheartbeat = \"1 s\"\n";
        let text = document(Kind::Monitor, toml);
        assert!(
            text.contains("# Logs, metrics, stop.\n[daemon]\n# The level of logging"),
            "{text}"
        );
        assert!(
            text.contains("# The time between two signs of life of a node.\nheartbeat = \"1 s\"\n"),
            "{text}"
        );
        assert!(
            text.contains("# The list of revoked certificates, PEM.\n# revoked is not set\n"),
            "{text}"
        );
        let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            plain.join("\n") + "\n",
            toml,
            "nothing but comments is added"
        );
    }

    /// Fails if an operator can read about a section that may be left out only after having set it, or if a section
    /// that is set is called unset.
    #[test]
    fn absent_section_is_still_documented() {
        let toml = "[notify]\ncommand = []\n\n[repair]\nautomatic = \"all\"\n";
        let text = document(Kind::Repository, toml);
        let (_, own) = text
            .split_once("# [notify.smtp] is not set; its keys:\n")
            .unwrap();
        let (own, _) = own.split_once("\n\n").unwrap();
        assert!(
            own.contains("#   password_file: The file whose first line"),
            "{text}"
        );
        assert_eq!(text.matches("[notify.smtp]").count(), 1, "{text}");
        let set = document(
            Kind::Repository,
            "[notify]\n\n[notify.smtp]\nserver = \"m\"\n",
        );
        assert!(!set.contains("[notify.smtp] is not set"), "{set}");
        assert!(
            set.contains("# The name of the mail server, as in its certificate.\nserver"),
            "{set}"
        );
        assert!(set.contains("# port is not set"), "{set}");
    }

    /// Fails if only the first of several `[[replica]]` has comments.
    #[test]
    fn lists_of_sections_are_documented_each() {
        let toml =
            "[[replica]]\nid = \"one\"\nkind = \"bitarchive\"\n\n[[replica]]\nid = \"two\"\n";
        let text = document(Kind::Repository, toml);
        assert_eq!(
            text.matches("# The id of the replica.\n").count(),
            2,
            "{text}"
        );
        assert_eq!(text.matches("# site is not set").count(), 2, "{text}");
    }
}
