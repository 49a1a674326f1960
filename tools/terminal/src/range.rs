//! A range of bytes as people write it: the first and the last byte, both included.

use std::str::FromStr;

/// `A-B`, or `A-` for everything from A on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// The offset behind the last byte; `None`: the end of the file.
    pub end: Option<u64>,
}

/// The reason why a text is not a range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRange {
    /// The text has another form.
    #[error("write it as FIRST-LAST, both included and counted from 0, or as FIRST-")]
    Form,
    /// The last byte comes before the first.
    #[error("the last byte comes before the first")]
    Backwards,
}

impl FromStr for ByteRange {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u64>()
                .ok()
                .filter(|_| digits)
                .ok_or(InvalidRange::Form)
        };
        let (first, last) = text.split_once('-').ok_or(InvalidRange::Form)?;
        let start = number(first)?;
        if last.is_empty() {
            return Ok(Self { start, end: None });
        }
        let last = number(last)?;
        if last < start {
            return Err(InvalidRange::Backwards);
        }
        let end = last.checked_add(1).ok_or(InvalidRange::Form)?;
        Ok(Self {
            start,
            end: Some(end),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the last byte of a range is left out, or if text that is not quite a range, `-5` for example, is read
    /// as one.
    #[test]
    fn ranges_include_both_ends() {
        let check = |text: &str, start, end| {
            assert_eq!(text.parse(), Ok(ByteRange { start, end }), "{text}");
        };
        check("0-0", 0, Some(1));
        check("5-9", 5, Some(10));
        check("7-", 7, None);
        for bad in [
            "",
            "-",
            "-5",
            "5",
            "a-b",
            "1-+2",
            "1--2",
            " 1-2",
            "0-18446744073709551615",
            "1-2-3",
        ] {
            assert_eq!(bad.parse::<ByteRange>(), Err(InvalidRange::Form), "{bad:?}");
        }
        assert_eq!("2-1".parse::<ByteRange>(), Err(InvalidRange::Backwards));
    }
}
