//! Texts of others, which people are shown.

/// Returns whether a terminal, a mail program or a page might obey the character in place of showing it: control
/// characters, changes of direction (Unicode Standard Annex 9), and separators of lines and paragraphs.
///
/// ```
/// assert!(archive_model::is_steering('\u{1b}') && archive_model::is_steering('\u{202e}'));
/// assert!(!archive_model::is_steering('é'));
/// ```
pub fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Returns the character as people are shown it: a space in place of one that is obeyed ([`is_steering`]).
pub fn visible_character(c: char) -> char {
    if is_steering(c) { ' ' } else { c }
}

#[cfg(test)]
mod tests {
    use super::is_steering;

    /// Fails if a character that turns the direction or ends a line is shown, or a letter or an emoji is not.
    #[test]
    fn steering_characters_are_told_from_text() {
        let steering = "\0\n\r\t\u{1b}\u{7f}\u{85}\u{9b}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";
        assert!(steering.chars().all(is_steering), "{steering:?}");
        let text = "aß\u{61b}\u{61d}\u{200d}\u{2010}\u{2027}\u{202f}\u{2065}\u{206a}😀 ";
        assert!(!text.chars().any(is_steering), "{text:?}");
    }
}
