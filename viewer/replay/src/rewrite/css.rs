//! Style sheets with their URLs rewritten: `url(…)`, `@import`, and the strings of `image-set(…)` (CSS Syntax Level 3).
//!
//! Owns as much of the syntax as distinguishes a URL from text that looks like one: comments, strings, escapes in
//! names, bad URLs. What is no URL is copied as it is.

use super::links::{LinkRewrite, Purpose};

/// Rewrites a style sheet, or the declarations of a `style` attribute.
pub(super) fn rewrite_css(text: &str, rewrite: &dyn Fn(&str, Purpose) -> LinkRewrite) -> String {
    let mut sheet = Sheet {
        rest: text,
        out: String::with_capacity(text.len() + text.len() / 4),
        rule: Rule::Other,
        functions: Vec::new(),
        rewrite,
    };
    while sheet.step() {}
    sheet.out
}

/// The rule that a token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// An `@import`: its string or URL is a style sheet.
    Import,
    /// An `@namespace`: its URL is a name, which nothing loads.
    Namespace,
    Other,
}

struct Sheet<'a> {
    rest: &'a str,
    out: String,
    rule: Rule,
    /// For each open parenthesis, whether strings in it are URLs.
    functions: Vec<bool>,
    rewrite: &'a dyn Fn(&str, Purpose) -> LinkRewrite,
}

impl Sheet<'_> {
    /// Copies or rewrites the next token. Returns whether there may be more.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        match first {
            '/' if self.rest.starts_with("/*") => {
                let end = self.rest.get(2..).and_then(|inner| inner.find("*/"));
                self.copy(end.map_or(self.rest.len(), |end| end + 4));
            }
            '"' | '\'' => self.string(first),
            '@' => {
                self.copy(1);
                let (name, length) = name(self.rest);
                self.copy(length);
                self.rule = match name.to_ascii_lowercase().as_str() {
                    "import" => Rule::Import,
                    "namespace" => Rule::Namespace,
                    _ => Rule::Other,
                };
            }
            '(' => {
                self.copy(1);
                self.functions.push(false);
            }
            ')' => {
                self.copy(1);
                self.functions.pop();
            }
            ';' | '{' | '}' => {
                self.copy(1);
                self.rule = Rule::Other;
                self.functions.clear();
            }
            '#' => {
                self.copy(1);
                let (_, length) = name(self.rest);
                self.copy(length);
            }
            _ if is_name(first) || first == '\\' => self.name(),
            _ => self.copy(first.len_utf8()),
        }
        true
    }

    /// Copies bytes of the input; their number is a boundary of characters.
    fn copy(&mut self, length: usize) {
        let (copied, rest) = self
            .rest
            .split_at_checked(length)
            .unwrap_or((self.rest, ""));
        self.out.push_str(copied);
        self.rest = rest;
    }

    /// Reads a name, and the function that it may begin.
    fn name(&mut self) {
        let (name, length) = name(self.rest);
        if length == 0 {
            // A backslash before a line end is no escape.
            return self.copy(1);
        }
        let is_function = self
            .rest
            .get(length..)
            .is_some_and(|behind| behind.starts_with('('));
        if !is_function {
            return self.copy(length);
        }
        let name = name.to_ascii_lowercase();
        if name == "url" {
            return self.url(length + 1);
        }
        self.copy(length + 1);
        let has_urls = matches!(
            name.as_str(),
            "image-set" | "-webkit-image-set" | "src" | "image"
        );
        self.functions.push(has_urls);
    }

    /// Reads a string, which is a URL in some places.
    fn string(&mut self, quote: char) {
        let (value, length) = string(self.rest, quote);
        let is_url = self.rule == Rule::Import || self.functions.last() == Some(&true);
        match value {
            Some(value) if is_url => {
                let purpose = self.purpose();
                self.rest = self.rest.get(length..).unwrap_or_default();
                self.rule = Rule::Other;
                self.emit(&value, purpose, false);
            }
            _ => self.copy(length),
        }
    }

    /// Reads `url(…)`, whose parenthesis ends at `begin`.
    fn url(&mut self, begin: usize) {
        let inner = self.rest.get(begin..).unwrap_or_default();
        let trimmed = inner.trim_start_matches(is_blank);
        let blanks = inner.len() - trimmed.len();
        let (value, length) = match trimmed.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let (value, length) = string(trimmed, quote);
                let behind = trimmed.get(length..).unwrap_or_default();
                let end = behind.find(')').map_or(behind.len(), |at| at + 1);
                // Modifiers may follow a string; they do not load anything.
                (value, length + end)
            }
            _ => unquoted(trimmed),
        };
        let length = begin + blanks + length;
        match value {
            Some(value) if self.rule != Rule::Namespace => {
                let purpose = self.purpose();
                self.rest = self.rest.get(length..).unwrap_or_default();
                self.rule = Rule::Other;
                self.emit(&value, purpose, true);
            }
            _ => self.copy(length),
        }
    }

    fn purpose(&self) -> Purpose {
        if self.rule == Rule::Import {
            Purpose::Style
        } else {
            Purpose::StyleResource
        }
    }

    fn emit(&mut self, reference: &str, purpose: Purpose, is_function: bool) {
        let address = match (self.rewrite)(reference, purpose) {
            LinkRewrite::Same => reference.to_owned(),
            LinkRewrite::Address(address) => address,
            LinkRewrite::Dropped => String::new(),
        };
        let (before, behind) = if is_function {
            ("url(\"", "\")")
        } else {
            ("\"", "\"")
        };
        self.out.push_str(before);
        for c in address.chars() {
            match c {
                '"' | '\\' => self.out.extend(['\\', c]),
                // A `<` could end the element that the sheet stands in.
                '<' => self.out.push_str("\\3c "),
                c if c.is_control() => {
                    let escaped = format!("\\{:x} ", u32::from(c));
                    self.out.push_str(&escaped);
                }
                c => self.out.push(c),
            }
        }
        self.out.push_str(behind);
    }
}

const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

const fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\x0c')
}

const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii()
}

/// Returns a name with its escapes undone, and the number of its bytes.
fn name(text: &str) -> (String, usize) {
    let mut value = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if is_name(c) {
            value.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        } else if let Some((c, behind)) = escape(rest) {
            value.push(c);
            rest = behind;
        } else {
            break;
        }
    }
    (value, text.len() - rest.len())
}

/// Returns the character of an escape, and what follows it; `None` if there is no escape.
fn escape(text: &str) -> Option<(char, &str)> {
    let rest = text.strip_prefix('\\')?;
    let digits = rest
        .bytes()
        .take(6)
        .take_while(u8::is_ascii_hexdigit)
        .count();
    let (number, behind) = rest.split_at(digits);
    if number.is_empty() {
        let c = rest.chars().next().filter(|c| !is_line_end(*c))?;
        return Some((c, rest.get(c.len_utf8()..).unwrap_or_default()));
    }
    let code = u32::from_str_radix(number, 16).unwrap_or(u32::MAX);
    let c = char::from_u32(code).filter(|c| *c != '\0');
    let behind = behind
        .strip_prefix("\r\n")
        .unwrap_or_else(|| behind.strip_prefix(is_blank).unwrap_or(behind));
    Some((c.unwrap_or(char::REPLACEMENT_CHARACTER), behind))
}

/// Returns the value of a string that begins with this quote, and the number of its bytes; no value if a line end
/// breaks it.
fn string(text: &str, quote: char) -> (Option<String>, usize) {
    let mut value = String::new();
    let mut rest = text.get(1..).unwrap_or_default();
    while let Some(c) = rest.chars().next() {
        if c == quote {
            rest = rest.get(1..).unwrap_or_default();
            return (Some(value), text.len() - rest.len());
        }
        if is_line_end(c) {
            return (None, text.len() - rest.len());
        }
        if let Some((c, behind)) = escape(rest) {
            value.push(c);
            rest = behind;
        } else if c == '\\' {
            // A line that is continued, or the end.
            let behind = rest.get(1..).unwrap_or_default();
            let continued = behind
                .strip_prefix("\r\n")
                .or_else(|| behind.strip_prefix(is_line_end));
            rest = continued.unwrap_or(behind);
        } else {
            value.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
    }
    // The end of the sheet ends it.
    (Some(value), text.len())
}

/// Returns the value of a URL without quotes, and the number of bytes up to and with its parenthesis; no value of a bad
/// one.
fn unquoted(text: &str) -> (Option<String>, usize) {
    let mut value = String::new();
    let mut is_bad = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == ')' {
            let length = text.len() - rest.len() + 1;
            return ((!is_bad).then_some(value), length);
        }
        if let Some((c, behind)) = escape(rest) {
            value.push(c);
            rest = behind;
            continue;
        }
        if is_blank(c) {
            let behind = rest.trim_start_matches(is_blank);
            is_bad |= !behind.starts_with(')') && !behind.is_empty();
            rest = behind;
            continue;
        }
        is_bad |= matches!(c, '"' | '\'' | '(' | '\\') || c.is_control();
        value.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    ((!is_bad).then_some(value), text.len())
}
