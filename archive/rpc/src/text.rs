//! Texts from the other end, made fit for people.

use archive_model::visible_character;

/// The longest text from the other end that people are shown, in characters.
const LONGEST: usize = 2000;

/// Makes a text from the other end fit for a terminal: without control characters or changes of direction, and not
/// endless.
pub fn visible_text(text: &str) -> String {
    text.chars().take(LONGEST).map(visible_character).collect()
}
