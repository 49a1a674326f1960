//! Bounds of what a component may define, looked at before it is compiled.
//!
//! Owns the bounds of what no limit of a running component sees: what each instance of a module takes beside its
//! memories and tables, and functions over which a compiler would sit without end. Does not know what a component is
//! for.

use wasmparser::{BinaryReaderError, Parser, Payload};

/// The number of instances of modules that a component may have. Components from Python and JavaScript have fewer than
/// twenty.
pub(super) const INSTANCES: usize = 64;

/// The most imports, functions, globals and elements of tables in all modules together: each takes up to 32 bytes in
/// each instance of its module.
const DEFINITIONS: u64 = 300_000;

/// The longest function, in bytes: the time to compile one grows faster than its length.
const FUNCTION: usize = 1 << 20;

/// Checks a component in binary form against the bounds. Fails with the bound that it exceeds.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what else there is, is bounded by the size of the component"
)]
pub(super) fn check_bounds(binary: &[u8]) -> Result<(), String> {
    let broken = |error: BinaryReaderError| format!("it does not compile: {error}");
    let mut definitions = 0_u64;
    for payload in Parser::new(0).parse_all(binary) {
        let more = match payload.map_err(broken)? {
            Payload::ImportSection(section) => section.count().into(),
            Payload::FunctionSection(section) => section.count().into(),
            Payload::GlobalSection(section) => section.count().into(),
            Payload::ElementSection(section) => {
                let mut items = 0;
                for element in section {
                    items += u64::from(count(&element.map_err(broken)?.items));
                }
                items
            }
            Payload::CodeSectionEntry(body) => {
                let length = body.range().len();
                if length > FUNCTION {
                    return Err(format!(
                        "one of its functions has {length} bytes; at most {FUNCTION} are compiled"
                    ));
                }
                0
            }
            _ => 0,
        };
        definitions += more;
        if definitions > DEFINITIONS {
            return Err(format!(
                "its modules define more than {DEFINITIONS} imports, functions, globals and elements of tables"
            ));
        }
    }
    Ok(())
}

fn count(items: &wasmparser::ElementItems<'_>) -> u32 {
    match items {
        wasmparser::ElementItems::Functions(functions) => functions.count(),
        wasmparser::ElementItems::Expressions(_, expressions) => expressions.count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        check_bounds(&wat::parse_str(text).unwrap()).unwrap_err()
    }

    /// Fails if a component with too many globals or table elements, also spread over nested modules, or with an
    /// endless function reaches the compiler.
    #[test]
    fn unmetered_resources_are_bounded_before_compilation() {
        let globals = "(global i64 (i64.const 1))".repeat(300_001);
        let words = refused(&format!("(component (core module {globals}))"));
        assert!(words.contains("more than 300000"), "{words}");
        // Modules in modules are counted too, and so are elements.
        let elements = "func $f ".to_owned() + &"$f ".repeat(100_001);
        let module = format!("(core module (func $f) (elem {elements}))");
        let words = refused(&format!(
            "(component (component {module}) {module} {module})"
        ));
        assert!(words.contains("more than 300000"), "{words}");
        let long = "nop ".repeat(FUNCTION + 1);
        let words = refused(&format!("(component (core module (func {long})))"));
        assert!(words.contains("at most 1048576 are compiled"), "{words}");
        let fine = wat::parse_str("(component (core module (func nop)))").unwrap();
        assert_eq!(check_bounds(&fine), Ok(()));
    }
}
