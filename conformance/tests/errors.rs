//! Public functions of the crates that many others call say when they fail, in their comment or in the head of their module.

use conformance::tree::File;

use crate::assert_none;
use crate::tidy::{declared, sources};

/// The crates of which every public function says when it fails: those that many others call, and the parsers.
const CALLED_BY_MANY: [&str; 5] = [
    "archive/client/",
    "archive/db/",
    "archive/formats/",
    "archive/model/",
    "archive/proof/",
];

/// Returns the public functions and methods of public traits that return a `Result` and do not say when they fail, as
/// `path:line`.
fn silent_errors(file: &File) -> Vec<String> {
    let lines: Vec<&str> = file.text.lines().collect();
    let module = lines.iter().take_while(|line| line.starts_with("//!"));
    if module.clone().any(|line| line.contains("# Errors")) {
        return Vec::new();
    }
    let mut says_errors = false;
    let mut is_in_trait = false;
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        match *line {
            "}" => is_in_trait = false,
            _ => is_in_trait |= line.starts_with("pub trait ") && !line.ends_with('}'),
        }
        if code.starts_with("///") {
            says_errors |= code.contains("# Errors");
        } else if (code.starts_with("pub ") || is_in_trait) && declared(code, &["fn"]).is_some() {
            let rest = lines[at..].iter();
            let body = rest.clone().position(|line| line.ends_with(['{', ';']));
            let signature: String = rest.take(body.unwrap_or(0) + 1).copied().collect();
            let returned = signature
                .rsplit_once("->")
                .and_then(|(_, returned)| returned.split("where").next())
                .unwrap_or_default();
            if returned.contains("Result<") && !says_errors {
                found.push(format!("{}:{}", file.path, at + 1));
            }
            says_errors = false;
        } else if !code.starts_with("#[") {
            says_errors = false;
        }
    }
    found
}

/// Fails if a public fallible function needs no words, or if words at the function or in the module's head do not
/// count.
#[test]
fn public_errors_without_words_are_found() {
    let silent =
        "/// Reads.\n#[inline]\npub fn read(\n    path: &Path,\n) -> io::Result<u8> {\n}\n";
    let file = |text: String| File {
        path: "x.rs".to_owned(),
        text,
    };
    assert_eq!(silent_errors(&file(silent.to_owned())), ["x.rs:3"]);
    let method = silent.replace("pub fn", "fn").replace("{\n}", ";");
    let public = format!("pub trait Read {{\n{method}}}\n");
    assert_eq!(silent_errors(&file(public)), ["x.rs:4"]);
    for good in [
        format!("//! Reads.\n//!\n//! # Errors\n//! All fail alike.\n{silent}"),
        silent.replace("Reads.\n", "Reads.\n/// # Errors\n/// Always.\n"),
        silent.replace("pub fn", "pub(crate) fn"),
        format!("trait Read {{\n{method}}}\n"),
        format!("pub trait Read {{\n}}\n{method}"),
        format!("pub trait Read {{}}\n{method}"),
        silent.replace("io::Result<u8>", "Vec<u8>"),
        "pub fn each(visit: impl Fn() -> io::Result<()>) -> u8 {\n}\n".to_owned(),
        "pub fn each<F>(visit: F) -> u8\nwhere\n    F::Output: Into<Result<u8>>,\n{\n}\n"
            .to_owned(),
    ] {
        assert!(silent_errors(&file(good.clone())).is_empty(), "{good}");
    }
}

/// Fails if a public function returns a `Result`, and neither its comment nor its module says when that is an error.
#[test]
fn public_functions_say_their_errors() {
    let sources = sources();
    let is_called_by_many =
        |file: &&File| CALLED_BY_MANY.iter().any(|at| file.path.starts_with(at));
    let called_by_many: Vec<&File> = sources.iter().filter(is_called_by_many).collect();
    assert!(
        called_by_many.len() > 100,
        "only {} files were found",
        called_by_many.len()
    );
    let found: Vec<String> = called_by_many.into_iter().flat_map(silent_errors).collect();
    assert_none(
        &found,
        "add `# Errors` to the function, or state the rule for all of them in the head of the module",
    );
}
