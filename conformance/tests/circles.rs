//! No circle of files: within a crate, no arrows lead from a file back to it.
//!
//! An arrow leads from a file to each file that it names, by `use` or by a path, past re-exports to the file that has
//! the name. A file and the folder of its name are one room: a file in the folder may use what the file above owns, and
//! what those above that own, up to `lib.rs`; this is no arrow. So a file and one in its folder may need each other,
//! and a circle that is closed by such a step alone is not found. Tests do not count.

mod names;

use std::collections::{BTreeMap, BTreeSet};

use conformance::tree;

use self::names::{FileNames, ModulePath, read_names};
use crate::assert_none;

/// A circle that may be for now: its crate, a file in it, and the reason.
type AllowedCircle = (&'static str, &'static str, &'static str);

/// The circles that may be for now. Each is to go.
const ALLOWED: &[AllowedCircle] = &[];

/// The arrows from each module of a crate.
type Arrows = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// Returns the arrows between the modules of a crate.
fn arrows(modules: &BTreeMap<ModulePath, FileNames>) -> Arrows {
    let of_module = |(module, names): (&ModulePath, &FileNames)| {
        let targets = names.paths.iter().map(|path| home(modules, path));
        let targets = targets.filter(|target| !module.starts_with(target));
        (module.clone(), targets.collect())
    };
    modules.iter().map(of_module).collect()
}

/// Returns the module that has what a path names: the last one on it, or the one that this has it from.
fn home(modules: &BTreeMap<ModulePath, FileNames>, path: &[String]) -> ModulePath {
    let mut path = path.to_vec();
    let mut seen = BTreeSet::new();
    loop {
        let depths = (0..=path.len()).rev();
        let mut modules_on_path = depths.filter_map(|depth| path.get(..depth));
        let module = modules_on_path.find(|module| modules.contains_key(*module));
        let module = module.unwrap_or_default().to_vec();
        let name = path.get(module.len());
        let imports = modules.get(&module).map(|names| &names.imports);
        let import = name.and_then(|name| imports?.get(name));
        // Paths that come back to themselves name what is outside of the crate.
        match import.filter(|import| seen.insert((*import).clone())) {
            Some(import) => {
                let rest = &path[module.len() + 1..];
                path = import.iter().chain(rest).cloned().collect();
            }
            None => return module,
        }
    }
}

/// Returns the modules that need each other, each circle in the order of their names.
fn circles(arrows: &Arrows) -> Vec<Vec<ModulePath>> {
    let reached: Arrows = arrows
        .keys()
        .map(|start| (start.clone(), reached_from(arrows, start)))
        .collect();
    let needs = |one: &ModulePath, other: &ModulePath| {
        let reached = reached.get(one);
        reached.is_some_and(|all| all.contains(other))
    };
    let circle_of = |module: &ModulePath| -> Vec<ModulePath> {
        let partners = reached.get(module).into_iter().flatten();
        let partners = partners.filter(|other| needs(other, module));
        partners.cloned().collect()
    };
    let circles: BTreeSet<_> = arrows.keys().map(circle_of).collect();
    circles.into_iter().filter(|all| all.len() > 1).collect()
}

fn reached_from(arrows: &Arrows, start: &ModulePath) -> BTreeSet<ModulePath> {
    let mut reached = BTreeSet::new();
    let mut next = vec![start];
    while let Some(module) = next.pop() {
        for target in arrows.get(module).into_iter().flatten() {
            if reached.insert(target.clone()) {
                next.push(target);
            }
        }
    }
    reached
}

/// Returns the modules of each crate of the tree, by the folder of the crate.
fn crates() -> BTreeMap<String, BTreeMap<ModulePath, FileNames>> {
    let mut texts: BTreeMap<String, BTreeMap<ModulePath, String>> = BTreeMap::new();
    for file in tree::files().unwrap() {
        let Some((folder, path)) = file.path.split_once("/src/") else {
            continue;
        };
        let Some(path) = path.strip_suffix(".rs") else {
            continue;
        };
        let mut module: ModulePath = path.split('/').map(str::to_owned).collect();
        if matches!(path, "lib" | "main") {
            module.clear();
        }
        let text = texts.entry(folder.to_owned()).or_default();
        text.entry(module).or_default().push_str(&file.text);
    }
    let texts = texts.into_iter();
    texts
        .map(|(folder, texts)| (folder, read_modules(&texts)))
        .collect()
}

/// Reads the modules of a crate, without those of its tests.
fn read_modules(texts: &BTreeMap<ModulePath, String>) -> BTreeMap<ModulePath, FileNames> {
    let read = |(module, text): (&ModulePath, &String)| {
        let names = read_names(module, text, &|child| texts.contains_key(child));
        (module.clone(), names)
    };
    let mut modules: BTreeMap<ModulePath, FileNames> = texts.iter().map(read).collect();
    let of_tests = modules.values().flat_map(|names| names.tests.clone());
    let of_tests: Vec<ModulePath> = of_tests.collect();
    modules.retain(|module, _| !of_tests.iter().any(|test| module.starts_with(test)));
    modules
}

/// Returns a circle as a line: who names whom in it.
fn described(folder: &str, circle: &[ModulePath], arrows: &Arrows) -> String {
    let of_module = |module: &ModulePath| {
        let targets = arrows.get(module).into_iter().flatten();
        let targets = targets.filter(|target| circle.contains(*target));
        let targets: Vec<String> = targets.map(|target| target.join("::")).collect();
        format!("{} -> {}", module.join("::"), targets.join(", "))
    };
    let lines: Vec<String> = circle.iter().map(of_module).collect();
    format!("{folder}: {}", lines.join("; "))
}

/// Fails if two files of a crate need each other, and neither lies in the folder of the other: neither can be
/// understood, or moved, without the other.
#[test]
fn no_files_of_a_crate_need_each_other() {
    let mut wrong = Vec::new();
    let mut used: BTreeSet<&AllowedCircle> = BTreeSet::new();
    let crates = crates();
    for (folder, modules) in &crates {
        let arrows = arrows(modules);
        for circle in circles(&arrows) {
            let is_in_circle = |file: &str| circle.iter().any(|module| module.join("::") == file);
            let allowed = ALLOWED
                .iter()
                .find(|(name, file, _)| *name == folder && is_in_circle(file));
            used.extend(allowed);
            if allowed.is_none() {
                wrong.push(described(folder, &circle, &arrows));
            }
        }
    }
    assert!(crates.len() > 30, "only {} crates were found", crates.len());
    assert_none(
        &wrong,
        "need each other: move what they share (a row, a name, an error, a context) into a file below them",
    );
    let unused = ALLOWED.iter().filter(|one| !used.contains(one));
    let unused: Vec<String> = unused.map(|one| format!("{one:?}")).collect();
    assert_none(&unused, "are circles no more: take them off the list");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ModulePath {
        text.split("::")
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Returns the circles of a crate of these files, each as one text.
    fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter();
        let texts = files.map(|(module, text)| (path(module), (*text).to_owned()));
        let arrows = arrows(&read_modules(&texts.collect()));
        let joined = |circle: Vec<ModulePath>| {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            names.join(" ")
        };
        circles(&arrows).into_iter().map(joined).collect()
    }

    /// Fails if a circle is overlooked, or files beside it are taken for a part of it.
    #[test]
    fn ring_of_files_is_one_circle() {
        let files = [
            ("", "mod a; mod b; mod c; mod d;"),
            ("a", "use crate::b::B;"),
            ("b", "fn b() -> super::c::C { crate::d::d() }"),
            ("c", "use super::{a::{A, Other as Another}, d};"),
            ("d", "pub struct D;"),
        ];
        assert_eq!(circles_of(&files), ["a b c"]);
        assert_eq!(circles_of(&files[..3]), [""; 0]);
    }

    /// Fails if names of a file above are taken for an arrow, or those of a file beside it are not.
    #[test]
    fn own_folder_is_no_arrow() {
        let files = [
            ("", "mod a; mod b; pub struct Root;"),
            ("a", "mod inner; use self::inner::Inner; use crate::b::B;"),
            (
                "a::inner",
                "use super::A; use crate::Root; use crate::a::A;",
            ),
            ("b", "use crate::Root;"),
        ];
        assert_eq!(circles_of(&files), [""; 0]);
        let beside = [("b", "use crate::a::inner::Inner;")];
        assert_eq!(circles_of(&[&files[..3], &beside[..]].concat()), [""; 0]);
        let back = [("a::inner", "use crate::b::B;"), ("b", "use crate::a::A;")];
        assert_eq!(
            circles_of(&[&files[..2], &back[..]].concat()),
            ["a a::inner b"]
        );
    }

    /// Fails if a name that is passed on counts for the file that passes it on.
    #[test]
    fn name_counts_for_file_that_has_it() {
        let files = [
            (
                "",
                "mod a; mod b; pub use a::A; pub(crate) use b::{B as Other, made};",
            ),
            ("a", "mod deep; pub use deep::Deep; use crate::Other;"),
            ("a::deep", "pub struct Deep;"),
            ("b", "use crate::a::Deep;"),
        ];
        assert_eq!(circles_of(&files), [""; 0]);
        let back = [("b", "use crate::A;")];
        assert_eq!(circles_of(&[&files[..3], &back[..]].concat()), ["a b"]);
    }

    /// Fails if two files that pass a name on to each other are asked forever.
    #[test]
    fn imports_in_a_ring_come_to_an_end() {
        let files = [
            ("", "mod a; mod b;"),
            ("a", "use crate::b::Name;"),
            ("b", "use crate::a::Name;"),
        ];
        assert_eq!(circles_of(&files).len(), 1);
    }

    /// Fails if a test, or a file of tests, is taken for a part of the product.
    #[test]
    fn tests_are_no_arrows() {
        let files = [
            ("", "mod a; mod b;"),
            (
                "a",
                "#[cfg(test)] mod tests; #[cfg(test)] use crate::b::B; fn a() {}",
            ),
            ("a::tests", "use crate::b::B;"),
            (
                "b",
                "use crate::a::A;\n#[cfg(test)]\nmod tests { use crate::b::C; }",
            ),
        ];
        assert_eq!(circles_of(&files), [""; 0]);
    }
}
