//! Keys whose bytes sort like their values.
//!
//! Numbers are big-endian; text that ends a key is itself; text that something follows is escaped and terminated.
//! The encodings are on disk permanently: a change is a new version of every database that uses them.

use std::fmt::Display;
use std::str::FromStr;

/// A value that is a key, or a component of one.
///
/// For any `a` and `b`: `a < b` exactly when the bytes of `a` sort before those of `b`.
///
/// ```
/// use archive_db::Key;
///
/// let bytes = |text: &str, number: u64| {
///     let mut out = Vec::new();
///     (text.to_owned(), number).encode(&mut out);
///     out
/// };
/// assert!(bytes("a", 2) < bytes("a", 300));
/// assert!(bytes("a", 300) < bytes("b", 2));
/// ```
pub trait Key: Sized {
    /// Appends the key so that other components may follow: no encoding is the beginning of another.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads a key that [`Key::encode`] wrote off the front of `bytes`.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidTableKey`] if `bytes` do not begin with a key of this type.
    fn decode(bytes: &mut &[u8]) -> Result<Self, InvalidTableKey>;

    /// Appends the key as the last component of a key.
    fn encode_last(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }

    /// Reads a key from all of `bytes`, which [`Key::encode_last`] wrote.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidTableKey`] if `bytes` are not exactly one key of this type.
    fn decode_last(mut bytes: &[u8]) -> Result<Self, InvalidTableKey> {
        let key = Self::decode(&mut bytes)?;
        if bytes.is_empty() {
            Ok(key)
        } else {
            Err(InvalidTableKey::Trailing(bytes.len()))
        }
    }
}

/// Marks `P` as the first components of a key of this type.
pub trait StartsWith<P: Key>: Key {}

/// The reason why bytes are not a key of the type asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTableKey {
    /// The bytes end within a component.
    #[error("it is cut off")]
    Cut,
    /// Bytes are left over behind the key.
    #[error("{0} bytes are left over")]
    Trailing(usize),
    /// Text has a zero byte that is neither an escape nor the terminator.
    #[error("byte {0:#04x} after a zero byte is no escape")]
    Escape(u8),
    /// Text is not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// The type does not accept the text.
    #[error("{text:?}: {why}")]
    Refused {
        /// The text that was refused.
        text: String,
        /// The reason that the type gave.
        why: String,
    },
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], InvalidTableKey> {
    let (head, tail) = bytes.split_first_chunk::<N>().ok_or(InvalidTableKey::Cut)?;
    *bytes = tail;
    Ok(*head)
}

macro_rules! unsigned {
    ($($number:ty),*) => {$(
        impl Key for $number {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, InvalidTableKey> {
                take(bytes).map(Self::from_be_bytes)
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64);

/// Encodes big-endian with the sign bit inverted, so that negative numbers come first.
impl Key for i64 {
    fn encode(&self, out: &mut Vec<u8>) {
        (self ^ Self::MIN).cast_unsigned().encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, InvalidTableKey> {
        u64::decode(bytes).map(|number| number.cast_signed() ^ Self::MIN)
    }
}

impl<const N: usize> Key for [u8; N] {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, InvalidTableKey> {
        take(bytes)
    }
}

/// The two bytes that stand for a zero byte inside text; terminated text ends with a zero byte and [`END`].
const ESCAPED_ZERO: [u8; 2] = [0, 0xff];
/// The byte behind the terminating zero byte: it sorts before every byte that can follow a zero byte inside text.
const END: u8 = 0;

fn encode_text(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            0 => out.extend_from_slice(&ESCAPED_ZERO),
            _ => out.push(byte),
        }
    }
    out.extend_from_slice(&[0, END]);
}

fn decode_text(bytes: &mut &[u8]) -> Result<String, InvalidTableKey> {
    let mut text = Vec::new();
    loop {
        match take(bytes)? {
            [0] => match take(bytes)? {
                [END] => return String::from_utf8(text).or(Err(InvalidTableKey::NotUtf8)),
                [0xff] => text.push(0),
                [other] => return Err(InvalidTableKey::Escape(other)),
            },
            [byte] => text.push(byte),
        }
    }
}

impl Key for String {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_text(self, out);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, InvalidTableKey> {
        decode_text(bytes)
    }

    fn encode_last(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn decode_last(bytes: &[u8]) -> Result<Self, InvalidTableKey> {
        str::from_utf8(bytes)
            .map(str::to_owned)
            .or(Err(InvalidTableKey::NotUtf8))
    }
}

/// Any type that is written and read as text, such as a file name or an id, as a key.
///
/// The type must sort as its text does, byte by byte, and must read what it writes.
///
/// ```
/// use archive_db::{MemoryPlace, DatabaseOptions, Text};
///
/// let database = MemoryPlace::new()?.open(&DatabaseOptions::new("example", 1, &["letters"]))?;
/// let letters = database.table::<Text<char>, u64>("letters")?;
/// let mut batch = database.batch();
/// batch.put(&letters, &Text('a'), &1)?;
/// batch.commit()?;
/// assert_eq!(letters.get(&Text('a'))?, Some(1));
/// # Ok::<(), archive_db::DbError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<T>(pub T);

impl<T> Text<T>
where
    T: FromStr<Err: Display>,
{
    fn parse(text: String) -> Result<Self, InvalidTableKey> {
        match text.parse() {
            Ok(value) => Ok(Self(value)),
            Err(why) => Err(InvalidTableKey::Refused {
                why: why.to_string(),
                text,
            }),
        }
    }
}

impl<T> Key for Text<T>
where
    T: Display + FromStr<Err: Display>,
{
    fn encode(&self, out: &mut Vec<u8>) {
        encode_text(&self.0.to_string(), out);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, InvalidTableKey> {
        decode_text(bytes).and_then(Self::parse)
    }

    fn encode_last(&self, out: &mut Vec<u8>) {
        self.0.to_string().encode_last(out);
    }

    fn decode_last(bytes: &[u8]) -> Result<Self, InvalidTableKey> {
        String::decode_last(bytes).and_then(Self::parse)
    }
}

macro_rules! tuple {
    ($($part:ident $index:tt),+; $last:ident $last_index:tt) => {
        impl<$($part: Key,)+ $last: Key> Key for ($($part,)+ $last) {
            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$index.encode(out);)+
                self.$last_index.encode(out);
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, InvalidTableKey> {
                Ok(($($part::decode(bytes)?,)+ $last::decode(bytes)?))
            }

            fn encode_last(&self, out: &mut Vec<u8>) {
                $(self.$index.encode(out);)+
                self.$last_index.encode_last(out);
            }

            fn decode_last(mut bytes: &[u8]) -> Result<Self, InvalidTableKey> {
                Ok(($($part::decode(&mut bytes)?,)+ $last::decode_last(bytes)?))
            }
        }
    };
}

tuple!(A 0; B 1);
tuple!(A 0, B 1; C 2);
tuple!(A 0, B 1, C 2; D 3);

impl<A: Key, B: Key> StartsWith<A> for (A, B) {}
impl<A: Key, B: Key, C: Key> StartsWith<A> for (A, B, C) {}
impl<A: Key, B: Key, C: Key> StartsWith<(A, B)> for (A, B, C) {}
impl<A: Key, B: Key, C: Key, D: Key> StartsWith<A> for (A, B, C, D) {}
impl<A: Key, B: Key, C: Key, D: Key> StartsWith<(A, B)> for (A, B, C, D) {}
impl<A: Key, B: Key, C: Key, D: Key> StartsWith<(A, B, C)> for (A, B, C, D) {}

/// Returns the bytes of a whole key.
pub(crate) fn to_bytes(key: &impl Key) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode_last(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    /// Checks that every pair sorts like its bytes in both encodings, that every value is read back, and that no
    /// encoding is the beginning of another.
    fn check<K: Key + Ord + Debug>(values: &[K]) {
        let encode = |key: &K| {
            let mut bytes = Vec::new();
            key.encode(&mut bytes);
            bytes
        };
        for a in values {
            let inner = encode(a);
            let last = to_bytes(a);
            assert_eq!(&K::decode_last(&last).unwrap(), a);
            let mut rest = inner.as_slice();
            assert_eq!((&K::decode(&mut rest).unwrap(), rest.len()), (a, 0));
            for b in values {
                assert_eq!(
                    a.cmp(b),
                    last.cmp(&to_bytes(b)),
                    "{a:?} {b:?} as the last component"
                );
                assert_eq!(
                    a.cmp(b),
                    inner.cmp(&encode(b)),
                    "{a:?} {b:?} with something after it"
                );
                assert!(
                    a == b || !encode(b).starts_with(&inner),
                    "{a:?} begins {b:?}"
                );
            }
            for cut in 0..inner.len() {
                assert_eq!(
                    K::decode(&mut &inner[..cut]).unwrap_err(),
                    InvalidTableKey::Cut,
                    "{a:?} cut at {cut}"
                );
            }
        }
    }

    /// All texts of up to four letters over an alphabet of the awkward ones.
    fn texts() -> Vec<String> {
        let mut all = vec![String::new()];
        let mut longest = all.clone();
        for _ in 0..4 {
            longest = longest
                .iter()
                .flat_map(|s| ["\0", "\u{1}", "a", "ÿ"].map(|c| format!("{s}{c}")))
                .collect();
            all.extend_from_slice(&longest);
        }
        all
    }

    /// Fails if the bytes of numbers sort in another order than the numbers, for example the negative ones last.
    #[test]
    fn numbers_and_arrays_sort_as_their_bytes() {
        check(&[0_u8, 1, 127, 128, 255]);
        check(&[0_u16, 1, 255, 256, u16::MAX]);
        check(&[0_u32, 1, 255, 256, 65535, 65536, u32::MAX]);
        check(&[0_u64, 1, 255, 256, 1 << 40, u64::MAX]);
        check(&[i64::MIN, -256, -1, 0, 1, 255, 256, i64::MAX]);
        check(&[[0_u8, 0], [0, 255], [1, 0], [255, 255]]);
    }

    /// Fails if a text with a zero byte sorts at another place, or the encoding of one text is the beginning of
    /// another.
    #[test]
    fn every_short_text_sorts_as_its_bytes() {
        check(&texts());
    }

    /// Fails if a later component of a tuple decides the order although an earlier one differs.
    #[test]
    fn tuples_sort_component_by_component() {
        let short: Vec<String> = texts()
            .into_iter()
            .filter(|text| text.chars().count() <= 2)
            .collect();
        let pairs: Vec<_> = short
            .iter()
            .flat_map(|a| short.iter().map(|b| (a.clone(), b.clone())))
            .collect();
        check(&pairs);
        let numbers = [0_u64, 1, u64::MAX];
        let mixed: Vec<_> = short
            .iter()
            .flat_map(|a| numbers.map(|n| (a.clone(), n, a.clone())))
            .collect();
        check(&mixed);
        let nested: Vec<_> = numbers
            .iter()
            .flat_map(|n| {
                short
                    .iter()
                    .map(|a| (*n, a.clone(), (a.clone(), *n), 1_i64))
            })
            .collect();
        check(&nested);
    }

    /// Fails if the encoded first components are not the beginning of the key, so that a scan of the prefix finds
    /// nothing.
    #[test]
    fn a_prefix_is_where_the_key_begins() {
        let mut prefix = Vec::new();
        ("a".to_owned(), 7_u64).encode(&mut prefix);
        assert!(to_bytes(&("a".to_owned(), 7_u64, "x".to_owned())).starts_with(&prefix));
        assert!(!to_bytes(&("a".to_owned(), 8_u64, "x".to_owned())).starts_with(&prefix));
    }

    /// Fails if a cut number, an unknown escape, or bytes behind a key are read as a key.
    #[test]
    fn bytes_that_are_no_key_are_refused() {
        assert_eq!(u64::decode_last(&[0; 9]), Err(InvalidTableKey::Trailing(1)));
        assert_eq!(u64::decode_last(&[0; 7]), Err(InvalidTableKey::Cut));
        assert_eq!(
            String::decode_last(&[b'a', 0xff]),
            Err(InvalidTableKey::NotUtf8)
        );
        assert_eq!(
            String::decode(&mut [0xc3, 0, 0].as_slice()),
            Err(InvalidTableKey::NotUtf8)
        );
        assert_eq!(
            String::decode(&mut [0, 1].as_slice()),
            Err(InvalidTableKey::Escape(1))
        );
        let error = Text::<u16>::decode_last(b"66000").unwrap_err();
        assert!(
            matches!(&error, InvalidTableKey::Refused { text, .. } if text == "66000"),
            "{error}"
        );
    }

    /// Fails if the encoding of a type that is kept as text changes, alone or within a tuple, and old rows are not
    /// found.
    #[test]
    fn a_type_with_a_text_is_a_key() {
        use std::net::Ipv4Addr;
        let address = Text(Ipv4Addr::LOCALHOST);
        assert_eq!(to_bytes(&address), b"127.0.0.1");
        assert_eq!(
            Text::<Ipv4Addr>::decode_last(b"127.0.0.1"),
            Ok(address.clone())
        );
        let pair = (address, 1_u8);
        assert_eq!(to_bytes(&pair), b"127.0.0.1\0\0\x01");
        assert_eq!(
            <(Text<Ipv4Addr>, u8)>::decode_last(b"127.0.0.1\0\0\x01"),
            Ok(pair)
        );
    }
}
