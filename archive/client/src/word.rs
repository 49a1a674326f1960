//! Ids that people type again, as the archive sends them.

use archive_model::attic::is_typed_id;
use archive_rpc::InvalidMessage;

/// Reads an id that people type again: visible characters, no space among them.
pub(crate) fn id(field: &'static str, text: &str) -> Result<String, InvalidMessage> {
    if text.is_empty() {
        return Err(InvalidMessage::missing(field));
    }
    if is_typed_id(text) {
        Ok(text.to_owned())
    } else {
        let text: String = text.chars().take(40).collect();
        Err(InvalidMessage::invalid(field, format!("{text:?} is no id")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
