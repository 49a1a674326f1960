//! Texts from the other end, made fit for people.

use archive_model::is_steering;

/// The longest text from the other end that people are shown, in characters.
const LONGEST: usize = 2000;

/// Makes a text from the other end fit for a terminal: without control characters or changes of direction, and not
/// endless.
pub fn plain(text: &str) -> String {
    let visible = |c: char| if is_steering(c) { ' ' } else { c };
    text.chars().take(LONGEST).map(visible).collect()
}
