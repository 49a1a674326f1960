//! URLs as people read them: without characters that deceive, and short where they are long.

/// The number of characters of a URL that are shown where it is one thing among others.
pub(crate) const SHORT: usize = 120;

/// A URL as a page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownUrl {
    /// The URL, or its beginning and its end.
    pub(crate) short: String,
    /// The whole URL.
    pub(crate) whole: String,
    /// Whether something was left out of `short`.
    pub(crate) is_cut: bool,
}

impl ShownUrl {
    /// Makes a URL readable.
    pub(crate) fn new(url: &str) -> Self {
        let whole = readable(url);
        let count = whole.chars().count();
        let is_cut = count > SHORT;
        let short = if is_cut {
            let begin: String = whole.chars().take(SHORT * 3 / 4).collect();
            let end: String = whole.chars().skip(count - SHORT / 5).collect();
            format!("{begin}…{end}")
        } else {
            whole.clone()
        };
        Self {
            short,
            whole,
            is_cut,
        }
    }
}

/// Returns a URL whose characters are all visible and stand where they are read.
fn readable(url: &str) -> String {
    let mut text = String::with_capacity(url.len());
    for character in url.chars() {
        if is_deceptive(character) {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                text.extend(['%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
            }
        } else {
            text.push(character);
        }
    }
    text
}

/// Returns a hexadecimal digit, as escapes have it.
pub(super) fn hex_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).map_or('0', |digit| digit.to_ascii_uppercase())
}

/// Returns whether a character is invisible, or turns the direction of those around it.
fn is_deceptive(character: char) -> bool {
    character.is_control()
        || character.is_whitespace()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a URL can look like another one, or a long one fills the page.
    #[test]
    fn shown_urls_are_short_and_honest() {
        let plain = ShownUrl::new("http://example.org/ø?a=b");
        assert_eq!(
            (plain.short.as_str(), plain.is_cut),
            ("http://example.org/ø?a=b", false)
        );
        let turned = ShownUrl::new("http://a/\u{202e}gro.b\u{200b} \u{1b}[2J");
        assert_eq!(turned.short, "http://a/%E2%80%AEgro.b%E2%80%8B%20%1B[2J");
        let long = format!("http://example.org/{}end", "x".repeat(10_000));
        let long = ShownUrl::new(&long);
        assert!(long.is_cut && long.short.chars().count() <= SHORT);
        assert!(long.short.starts_with("http://example.org/x") && long.short.ends_with("end"));
        assert_eq!(long.whole.len(), 10_022);
    }
}
