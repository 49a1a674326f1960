//! The workspace as Cargo knows it: who depends on whom, under which licence.
//!
//! # Errors
//!
//! All functions fail if Cargo cannot be run, or its answer has another shape than expected; the error names the place.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::tree;

/// Names, and for each of them other names.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// The output of `cargo metadata` for this workspace on this platform.
#[derive(Debug)]
pub struct Metadata(Value);

/// A package somewhere in the resolved graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    /// The name of the package.
    pub name: String,
    /// The version of the package.
    pub version: String,
    /// The licence expression of the package, if it states one.
    pub license: Option<String>,
}

impl Metadata {
    /// Asks Cargo. Nothing is built and `Cargo.lock` is not changed.
    pub fn read() -> Result<Self> {
        let version = cargo(&["-vV"])?;
        let host = version
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .context("`cargo -vV` names no host")?;
        let json = cargo(&[
            "metadata",
            "--locked",
            "--format-version",
            "1",
            "--filter-platform",
            host,
        ])?;
        Ok(Self(serde_json::from_str(&json)?))
    }

    /// Returns the crates of the workspace.
    pub fn members(&self) -> Result<BTreeSet<String>> {
        let ids = strings(&self.0, "workspace_members")?;
        Ok(self
            .packages()?
            .into_iter()
            .filter(|(id, _)| ids.contains(id))
            .map(|(_, package)| package.name)
            .collect())
    }

    /// Returns the dependencies that each crate of the workspace names under `[dependencies]`, outside crates included.
    pub fn dependencies(&self) -> Result<Graph> {
        let members = self.members()?;
        let mut graph = Graph::new();
        for package in array(&self.0, "packages")? {
            let name = string(package, "name")?;
            // An outside crate may have the name of a member, but it has a source.
            if !members.contains(&name) || !package.get("source").is_some_and(Value::is_null) {
                continue;
            }
            let named = graph.entry(name).or_default();
            for dependency in array(package, "dependencies")? {
                if dependency.get("kind").is_some_and(Value::is_null) {
                    named.insert(string(dependency, "name")?);
                }
            }
        }
        Ok(graph)
    }

    /// Returns every package that ends up in `member`, through normal dependencies of any depth, as resolved here.
    pub fn closure(&self, member: &str) -> Result<BTreeSet<String>> {
        let packages = self.packages()?;
        let resolve = self.0.get("resolve").context("no `resolve`")?;
        let mut edges: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for node in array(resolve, "nodes")? {
            let targets = edges.entry(string(node, "id")?).or_default();
            for edge in array(node, "deps")? {
                let kinds = array(edge, "dep_kinds")?;
                if kinds
                    .iter()
                    .any(|kind| kind.get("kind").is_some_and(Value::is_null))
                {
                    targets.push(string(edge, "pkg")?);
                }
            }
        }
        let start = packages
            .iter()
            .find(|(_, package)| package.name == member)
            .map(|(id, _)| id.clone());
        let mut open = vec![start.with_context(|| format!("no package `{member}`"))?];
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            if seen.insert(id.clone()) {
                open.extend(edges.get(&id).into_iter().flatten().cloned());
            }
        }
        Ok(packages
            .into_iter()
            .filter(|(id, _)| seen.contains(id))
            .map(|(_, package)| package.name)
            .collect())
    }

    /// Returns every package that is compiled for this platform, those of build scripts and tests included.
    pub fn resolved(&self) -> Result<BTreeSet<Package>> {
        let resolve = self.0.get("resolve").context("no `resolve`")?;
        let ids: BTreeSet<String> = array(resolve, "nodes")?
            .iter()
            .map(|node| string(node, "id"))
            .collect::<Result<_>>()?;
        Ok(self
            .packages()?
            .into_iter()
            .filter(|(id, _)| ids.contains(id))
            .map(|(_, package)| package)
            .collect())
    }

    fn packages(&self) -> Result<Vec<(String, Package)>> {
        let read = |package: &Value| {
            let license = package
                .get("license")
                .and_then(Value::as_str)
                .map(str::to_owned);
            Ok((
                string(package, "id")?,
                Package {
                    name: string(package, "name")?,
                    version: string(package, "version")?,
                    license,
                },
            ))
        };
        array(&self.0, "packages")?.iter().map(read).collect()
    }
}

fn cargo(arguments: &[&str]) -> Result<String> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(tree::root())
        .output()?;
    ensure!(
        output.status.success(),
        "cargo {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value
        .get(key)
        .and_then(Value::as_array)
        .with_context(|| format!("cargo metadata has no list `{key}`"))
}

fn string(value: &Value, key: &str) -> Result<String> {
    let text = value.get(key).and_then(Value::as_str);
    text.map(str::to_owned)
        .with_context(|| format!("cargo metadata has no text `{key}`"))
}

fn strings(value: &Value, key: &str) -> Result<BTreeSet<String>> {
    Ok(array(value, key)?
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect())
}
