//! Percent-encoding: undone until nothing is left to undo, then done once where needed.

/// Undoes all escapes, escapes again, and returns the text in small letters.
pub(super) fn canonical_escapes(text: &[u8]) -> String {
    let mut text = escape_bytes(&unescape_bytes(text));
    text.make_ascii_lowercase();
    text
}

/// Undoes escapes such as `%41` again and again, until a round finds none. Text that is no escape stays.
///
/// Each round shortens the text, so that there are no more rounds than bytes; a deep nesting of `%25` is undone in the
/// same round, by looking again at the result of an escape.
pub(super) fn unescape_bytes(text: &[u8]) -> Vec<u8> {
    let Some(first) = memchr::memchr(b'%', text) else {
        return text.to_vec();
    };
    let (plain, text) = text.split_at(first);
    let mut out: Vec<u8> = Vec::with_capacity(first + text.len());
    out.extend_from_slice(plain);
    for &byte in text {
        out.push(byte);
        // An escape ends here, or its result ends one: look again at the end of the output.
        while let Some(decoded) = ending(&out) {
            out.truncate(out.len() - 3);
            out.push(decoded);
        }
    }
    out
}

fn ending(out: &[u8]) -> Option<u8> {
    match out.last_chunk::<3>() {
        Some([b'%', high, low]) => Some(digit(*high)? * 16 + digit(*low)?),
        _ => None,
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Escapes blanks, controls, `#`, `%` and all that is not ASCII.
pub(super) fn escape_bytes(text: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        let plain = rest.iter().take_while(|b| stays(**b)).count();
        let (kept, more) = rest.split_at(plain);
        out.extend_from_slice(kept);
        let Some((byte, more)) = more.split_first() else {
            break;
        };
        let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
        out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        rest = more;
    }
    // The output is ASCII, so that nothing is lost here.
    String::from_utf8(out).unwrap_or_default()
}

fn stays(byte: u8) -> bool {
    byte > 0x20 && byte < 0x7f && byte != b'#' && byte != b'%'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round after round, as the rule is told.
    fn rounds(text: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        loop {
            let mut next = Vec::new();
            let mut at = 0;
            while at < text.len() {
                let decoded = text.get(at..at + 3).and_then(ending);
                next.push(decoded.unwrap_or(text[at]));
                at += if decoded.is_some() { 3 } else { 1 };
            }
            if next == text {
                return text;
            }
            text = next;
        }
    }

    /// Fails if unescaping a text once leaves an escape that another round would undo.
    #[test]
    fn one_pass_is_as_good_as_many_rounds() {
        // Tests every text of up to 7 of these letters.
        let letters = b"%254";
        for length in 0..=7_u32 {
            for n in 0..4_usize.pow(length) {
                let text: Vec<u8> = (0..length)
                    .map(|i| letters[n / 4_usize.pow(i) % 4])
                    .collect();
                assert_eq!(
                    unescape_bytes(&text),
                    rounds(&text),
                    "{}",
                    String::from_utf8_lossy(&text)
                );
            }
        }
    }

    /// Fails if nested escapes are undone round after round: 4 million rounds over megabytes are many hours.
    #[test]
    fn a_long_nesting_is_undone_in_one_round() {
        let text = [&b"%"[..], &b"25".repeat(4_000_000)].concat();
        assert_eq!(
            tools_testing::in_time_blocking(move || canonical_escapes(&text)),
            "%25"
        );
    }

    /// Fails if an escaped text contains a blank, a control character or a byte beyond ASCII, or is another text when
    /// the escapes are undone.
    #[test]
    fn escaped_text_is_ascii_and_reads_back() {
        let all: Vec<u8> = (0..=255).collect();
        let escaped = escape_bytes(&all);
        assert!(escaped.bytes().all(|b| b > 0x20 && b < 0x7f));
        assert_eq!(unescape_bytes(escaped.as_bytes()), all);
        assert_eq!(escape_bytes(b"A b#%\xc3\xa9"), "A%20b%23%25%c3%a9");
    }
}
