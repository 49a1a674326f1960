//! The rules: which roles may call which RPC. A call without a rule is denied.
//!
//! Owns the table and the question [`Rules::check_call`]. Not promised: a decision about arguments; a rule sees a path and
//! an identity, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use prost_types::FileDescriptorSet;

use crate::identity::Identity;
use crate::role::{Role, shorten_text};

/// The table of rules: the full path of an RPC (`/package.Service/Method`) → the roles that may call it.
#[derive(Clone, Debug)]
pub struct Rules {
    admitted: BTreeMap<String, PermittedCallers>,
}

#[derive(Clone, Debug)]
enum PermittedCallers {
    Everybody,
    Roles(BTreeSet<Role>),
}

/// The reason why a call was not let through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallRefusal {
    /// The identity carries none of the roles that may.
    #[error("`{}` is for {}; this certificate is {caller}", verb(.path), list(.roles))]
    Role {
        /// The path of the RPC.
        path: String,
        /// The roles that may call it.
        roles: Vec<Role>,
        /// The identity of the caller.
        caller: String,
    },
    /// No rule names the path.
    #[error("no rule lets anybody call {0}")]
    NoRule(String),
}

/// The reason why a descriptor set cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the descriptor set cannot be read: {0}")]
pub struct InvalidDescriptors(#[from] prost::DecodeError);

/// The calls that any certificate may make: health and reflection tell nothing about the archive's content.
const OPEN: [&str; 3] = [
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];

impl Rules {
    /// Makes rules that allow only health and reflection, for any valid certificate.
    pub fn new() -> Self {
        Self {
            admitted: OPEN
                .iter()
                .map(|path| ((*path).to_owned(), PermittedCallers::Everybody))
                .collect(),
        }
    }

    /// Lets `roles` call `path`. Several calls for one path add up; without any role no caller may.
    #[must_use]
    pub fn allow_call(mut self, path: &str, roles: &[Role]) -> Self {
        let rule = self
            .admitted
            .entry(path.to_owned())
            .or_insert_with(|| PermittedCallers::Roles(BTreeSet::new()));
        if let PermittedCallers::Roles(admitted) = rule {
            admitted.extend(roles);
        }
        self
    }

    /// Checks whether `caller` may call `path`.
    ///
    /// # Errors
    ///
    /// [`CallRefusal`] if no rule names the path, or none of the caller's roles is admitted.
    pub fn check_call(&self, path: &str, caller: &Identity) -> Result<(), CallRefusal> {
        match self.admitted.get(path) {
            None => Err(CallRefusal::NoRule(shorten_text(path))),
            Some(PermittedCallers::Everybody) => Ok(()),
            Some(PermittedCallers::Roles(roles))
                if roles.iter().any(|role| caller.has_role(*role)) =>
            {
                Ok(())
            }
            Some(PermittedCallers::Roles(roles)) => Err(CallRefusal::Role {
                path: path.to_owned(),
                roles: roles.iter().copied().collect(),
                caller: caller.to_string(),
            }),
        }
    }

    /// Returns those of `paths` that no rule names. A server does not start while there are any.
    pub fn missing_paths(&self, paths: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
        let missing = |path: &String| !self.admitted.contains_key(path);
        paths
            .into_iter()
            .map(|path| path.as_ref().to_owned())
            .filter(missing)
            .collect()
    }

    /// Returns every path that a rule names, sorted: a test finds the rules that name no RPC.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.admitted.keys().map(String::as_str)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the paths of all RPCs in an encoded `FileDescriptorSet`.
///
/// # Errors
///
/// [`InvalidDescriptors`] if the bytes are not a descriptor set.
pub fn rpc_paths(descriptors: &[u8]) -> Result<Vec<String>, InvalidDescriptors> {
    let mut paths = Vec::new();
    for file in FileDescriptorSet::decode(descriptors)?.file {
        let prefix = if file.package().is_empty() {
            String::new()
        } else {
            format!("{}.", file.package())
        };
        for service in &file.service {
            paths.extend(
                service
                    .method
                    .iter()
                    .map(|method| format!("/{prefix}{}/{}", service.name(), method.name())),
            );
        }
    }
    Ok(paths)
}

/// Returns the verb of an RPC, as people type it: `/holdfast.archive.v1.Preservation/NotifyTest` is `notify test`.
fn verb(path: &str) -> String {
    let (_, method) = path.rsplit_once('/').unwrap_or(("", path));
    let mut verb = String::new();
    for letter in method.chars() {
        if letter.is_ascii_uppercase() && !verb.is_empty() {
            verb.push(' ');
        }
        verb.push(letter.to_ascii_lowercase());
    }
    verb
}

fn list(roles: &[Role]) -> String {
    match roles {
        [] => "nobody".to_owned(),
        roles => roles
            .iter()
            .map(|role| role.as_str())
            .collect::<Vec<_>>()
            .join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::tests::identity;

    /// Fails if a path without a rule may be called, or one that only resembles the path of a rule.
    #[test]
    fn path_without_rule_is_denied() {
        let anna = identity(&["officer/anna", "operator/anna", "custodian/anna"]);
        assert_eq!(
            Rules::new().check_call("/a.B/C", &anna),
            Err(CallRefusal::NoRule("/a.B/C".into()))
        );
        let rules = Rules::new().allow_call("/a.B/C", &[]);
        let error = rules.check_call("/a.B/C", &anna).unwrap_err().to_string();
        assert!(error.contains("is for nobody"), "{error}");
        // A prefix, a suffix or another spelling is another path.
        let rules = Rules::new().allow_call("/a.B/C", &[Role::Officer]);
        for other in [
            "/a.B/C/",
            "/a.B/",
            "a.B/C",
            "/A.b/c",
            "//a.B/C",
            "/a.B/C%00",
            "",
        ] {
            assert!(rules.check_call(other, &anna).is_err(), "{other:?}");
        }
        assert_eq!(rules.check_call("/a.B/C", &anna), Ok(()));
    }

    /// Fails if a rule for a role admits a caller whose role does not include it, or refuses one whose role does.
    #[test]
    fn role_admits_itself_and_the_roles_it_includes() {
        // Written down here once more: the rules ask the roles themselves.
        let readers = [Role::Reader, Role::Researcher, Role::Officer];
        for needed in Role::ALL {
            let rules = Rules::new().allow_call("/a.B/C", &[needed]);
            for held in Role::ALL {
                let caller = identity(&[&format!("{held}/x")]);
                let is_admitted =
                    held == needed || (needed == Role::Reader && readers.contains(&held));
                assert_eq!(
                    rules.check_call("/a.B/C", &caller).is_ok(),
                    is_admitted,
                    "{held} calls for {needed}"
                );
            }
        }
    }

    /// Fails if a refusal leaves out a role that may call or the identity that asked, or a second rule of a path
    /// replaces the first.
    #[test]
    fn a_refusal_names_who_may_and_who_asked() {
        let rules = Rules::new()
            .allow_call("/a.B/C", &[Role::Custodian])
            .allow_call("/a.B/C", &[Role::Operator]);
        let error = rules
            .check_call("/a.B/C", &identity(&["reader/ben"]))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "`c` is for custodian, operator; this certificate is reader/ben"
        );
    }

    /// Fails if a refusal writes the words of a verb as one, or parts them at another place.
    #[test]
    fn verb_of_several_words_is_split() {
        for (path, expected) in [
            (
                "/holdfast.archive.v1.Preservation/NotifyTest",
                "notify test",
            ),
            ("/a.B/SetNodeMode", "set node mode"),
            ("/a.B/Get", "get"),
        ] {
            let rules = Rules::new().allow_call(path, &[Role::Operator]);
            let refused = rules.check_call(path, &identity(&["reader/ben"]));
            assert_eq!(
                refused.unwrap_err().to_string(),
                format!("`{expected}` is for operator; this certificate is reader/ben")
            );
        }
    }

    /// Fails if an RPC of a descriptor set is missed when its rule is looked for, or a broken set counts as one without
    /// RPCs.
    #[test]
    fn the_walk_finds_every_rpc_without_a_rule() {
        let paths = rpc_paths(tonic_health::pb::FILE_DESCRIPTOR_SET).unwrap();
        assert_eq!(
            paths,
            [
                "/grpc.health.v1.Health/Check",
                "/grpc.health.v1.Health/Watch"
            ]
        );
        let rules = Rules::new().allow_call("/a.B/C", &[]);
        assert_eq!(rules.missing_paths(&paths), Vec::<String>::new());
        assert_eq!(rules.missing_paths(["/a.B/C", "/a.B/D"]), ["/a.B/D"]);
        assert_eq!(
            rules
                .paths()
                .filter(|path| path.starts_with("/a"))
                .collect::<Vec<_>>(),
            ["/a.B/C"]
        );
        assert!(rpc_paths(&[0xff; 9]).is_err());
    }
}
