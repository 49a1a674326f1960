//! Texts from the other end, made fit for people.

/// The longest text from the other end that people are shown, in characters.
const LONGEST: usize = 2000;

/// Makes a text from the other end fit for a terminal: without control characters or changes of direction, and not
/// endless.
pub fn plain(text: &str) -> String {
    let steers = |c: char| {
        let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || matches!(c, '\u{2028}' | '\u{2029}') || c.is_control()
    };
    let visible = |c: char| if steers(c) { ' ' } else { c };
    text.chars().take(LONGEST).map(visible).collect()
}
