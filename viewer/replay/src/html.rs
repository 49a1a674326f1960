//! Words from outside on small pages: escaped for HTML, tamed for terminals, and in the form that a client asks for.

/// Returns a text as it stands in HTML, attributes included; control characters become blanks.
pub fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&#34;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(blank(c)),
        }
    }
    escaped
}

/// Returns a text without control characters, which terminals obey.
pub fn tame_text(text: &str) -> String {
    text.chars().map(blank).collect()
}

fn blank(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// Returns whether a client whose `Accept` fields have these values shows HTML.
pub fn is_wanted<'a>(accept: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut members = accept
        .into_iter()
        .flat_map(|value| value.split(|byte| *byte == b','));
    members.any(|member| {
        let mut parts = member.split(|byte| *byte == b';');
        let essence = parts.next().unwrap_or_default();
        essence.trim_ascii().eq_ignore_ascii_case(b"text/html")
    })
}
