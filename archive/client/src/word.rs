//! Enumerations that are words on the wire. A word that this build does not know is refused, never guessed.

/// Makes an enumeration whose values are words on the wire, in listings and in JSON.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        pub enum $name {
            $($(#[$value_doc])* #[serde(rename = $word)] $value,)+
        }

        impl $name {
            /// In one word, as in listings.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            /// Reads the word in a field of a message.
            pub(crate) fn read(
                field: &'static str,
                text: &str,
            ) -> Result<Self, archive_rpc::InvalidMessage> {
                match text {
                    $($word => Ok(Self::$value),)+
                    other => Err($crate::word::unknown(field, other)),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

pub(crate) use words;

use archive_rpc::InvalidMessage;

/// The longest id that is believed, in characters.
const LONGEST_ID: usize = 200;

/// A word of a newer archive, or none.
pub(crate) fn unknown(field: &'static str, text: &str) -> InvalidMessage {
    if text.is_empty() {
        return InvalidMessage::missing(field);
    }
    let text: String = text.chars().take(40).collect();
    InvalidMessage::invalid(
        field,
        format!("is {text:?}, which this build does not know"),
    )
}

/// Reads an id that people type again: visible characters, no space among them.
pub(crate) fn id(field: &'static str, text: &str) -> Result<String, InvalidMessage> {
    if text.is_empty() {
        return Err(InvalidMessage::missing(field));
    }
    if is_id(text) {
        Ok(text.to_owned())
    } else {
        let text: String = text.chars().take(40).collect();
        Err(InvalidMessage::invalid(field, format!("{text:?} is no id")))
    }
}

/// Whether a text can be an id, and be typed in a shell as it is.
pub(crate) fn is_id(text: &str) -> bool {
    let safe =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '~' | '+');
    (1..=LONGEST_ID).contains(&text.len())
        && !text.starts_with(['-', '.'])
        && text.chars().all(safe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preservation::ActWord;

    #[test]
    fn word_reads_back_and_others_are_refused() {
        for act in [ActWord::Purge, ActWord::NewRoot] {
            assert_eq!(ActWord::read("act", act.word()).unwrap(), act);
            assert_eq!(serde_json::to_value(act).unwrap(), act.word());
        }
        for bad in ["", "Purge", "purge ", "burn\u{1b}[2J"] {
            let error = ActWord::read("act", bad).unwrap_err().to_string();
            assert!(error.contains("`act`"), "{error}");
            assert!(!error.contains('\u{1b}'), "{error:?}");
        }
    }

    #[test]
    fn an_id_can_be_typed() {
        for good in ["17", "a-1", "20260101T000000Z-0a", "x:y~z"] {
            assert_eq!(id("id", good).unwrap(), good);
        }
        for bad in [
            "",
            "-x",
            "..",
            "a b",
            "a/b",
            "a\n",
            "ä",
            "$(x)",
            &"x".repeat(201),
        ] {
            assert!(id("id", bad).is_err(), "{bad:?}");
        }
    }
}
