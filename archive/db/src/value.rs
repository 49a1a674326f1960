//! Values: one version byte, then the value in postcard's compact form.
//!
//! Another version is an error, and so are bytes that do not decode to their end. Postcard has no field names, so a
//! changed type is a new version.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that a table keeps under a key.
pub trait TableValue: Serialize + DeserializeOwned {
    /// The only version that this build reads and writes: the first byte of every value.
    const VERSION: u8 = 1;
}

impl TableValue for () {}
impl TableValue for u64 {}
impl TableValue for String {}

/// The reason why bytes are not a value of the type asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    /// The version is one that this build does not read.
    #[error("it is of unknown version {found}; this build writes version {written}")]
    Version {
        /// The version that was found.
        found: u8,
        /// The version that this build writes.
        written: u8,
    },
    /// The value has not even a version byte.
    #[error("it is empty")]
    Empty,
    /// The body does not decode.
    #[error("it does not decode: {0}")]
    Undecodable(String),
    /// The body is longer than the value.
    #[error("{0} bytes are left over")]
    Trailing(usize),
    /// The type does not write what it reads.
    #[error("its type is not written as it is read (no skipped or flattened fields): {0}")]
    Asymmetric(String),
}

/// Returns the bytes of a value. They are read back once, so that a value that cannot be read is never written.
pub(crate) fn encode_value<V: TableValue>(value: &V) -> Result<Vec<u8>, InvalidValue> {
    encode_into(value, Vec::new())
}

/// Encodes as [`encode`] does, in the memory of bytes that are no longer needed.
pub(crate) fn encode_into<V: TableValue>(
    value: &V,
    mut room: Vec<u8>,
) -> Result<Vec<u8>, InvalidValue> {
    room.clear();
    room.push(V::VERSION);
    let bytes = postcard::to_extend(value, room)
        .map_err(|error| InvalidValue::Asymmetric(error.to_string()))?;
    match decode_value::<V>(&bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(InvalidValue::Asymmetric(error.to_string())),
    }
}

/// Reads a value that [`encode`] wrote.
pub(crate) fn decode_value<V: TableValue>(bytes: &[u8]) -> Result<V, InvalidValue> {
    match bytes.split_first() {
        None => Err(InvalidValue::Empty),
        Some((&version, body)) if version == V::VERSION => decode_body(body),
        Some((&found, _)) => Err(InvalidValue::Version {
            found,
            written: V::VERSION,
        }),
    }
}

/// Reads all of `body`, the bytes after the version byte, as a `T`.
///
/// # Errors
///
/// Returns [`InvalidValue`] if the bytes do not decode, or some are left over.
pub fn decode_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, InvalidValue> {
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(InvalidValue::Trailing(rest.len())),
        Err(error) => Err(InvalidValue::Undecodable(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Old {
        size: u64,
    }
    impl TableValue for Old {}

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct New {
        size: u64,
        note: Option<String>,
    }
    impl TableValue for New {
        const VERSION: u8 = 2;
    }

    /// Fails if a value of an older or a newer version is read as if it were ours.
    #[test]
    fn value_of_another_version_is_refused() {
        let old = encode_value(&Old { size: 300 }).unwrap();
        assert_eq!(
            decode_value::<New>(&old),
            Err(InvalidValue::Version {
                found: 1,
                written: 2
            })
        );
        let new = encode_value(&New {
            size: 300,
            note: Some("ü".into()),
        })
        .unwrap();
        assert_eq!(
            decode_value(&new),
            Ok(New {
                size: 300,
                note: Some("ü".into())
            })
        );
        assert_eq!(
            decode_value::<Old>(&new),
            Err(InvalidValue::Version {
                found: 2,
                written: 1
            })
        );
    }

    /// Fails if a cut value, or one with bytes behind it, is read, or memory is allocated for a length before it is
    /// checked.
    #[test]
    fn cut_overlong_and_huge_values_are_errors() {
        let bytes = encode_value(&New {
            size: 300,
            note: Some("abc".into()),
        })
        .unwrap();
        assert_eq!(decode_value::<New>(&[]), Err(InvalidValue::Empty));
        for cut in 1..bytes.len() {
            assert!(decode_value::<New>(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert_eq!(
            decode_value::<New>(&[bytes.as_slice(), &[0]].concat()),
            Err(InvalidValue::Trailing(1))
        );
        // The length of a text, seven bits in each byte: 2^64 - 1, and no text behind it.
        let huge = [&[1_u8][..], &[0xff; 9], &[1]].concat();
        let error = decode_value::<String>(&huge).unwrap_err();
        assert!(
            matches!(error, InvalidValue::Undecodable(_)),
            "a length of nearly 2^64 is refused, not allocated: {error}"
        );
    }

    /// Fails if a row is written that cannot be read: the format has no names, and a field that is left out shifts the
    /// others.
    #[test]
    fn a_type_that_skips_fields_is_never_written() {
        #[derive(Serialize, Deserialize)]
        struct Skips {
            #[serde(default, skip_serializing_if = "Option::is_none")]
            note: Option<u64>,
        }
        impl TableValue for Skips {}
        assert!(encode_value(&Skips { note: Some(1) }).is_ok());
        assert!(matches!(
            encode_value(&Skips { note: None }),
            Err(InvalidValue::Asymmetric(_))
        ));
    }
}
