//! Values that stand in TOML as text, read and written by their own `FromStr` and `Display`.
//!
//! Owns that an error is raised while the text is visited, so that the parser knows at which place in the file.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

struct TextValue<T>(T);

impl<'de, T> Deserialize<'de> for TextValue<T>
where
    T: FromStr,
    T::Err: Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor<T>(PhantomData<T>);

        impl<T> Visitor<'_> for TextVisitor<T>
        where
            T: FromStr,
            T::Err: Display,
        {
            type Value = TextValue<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text between quotation marks")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<TextValue<T>, E> {
                text.parse().map(TextValue).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

/// Reads and writes a value by itself: `#[serde(with = "text::one")]`.
pub(crate) mod one {
    use super::{Deserialize as _, Deserializer, Display, FromStr, TextValue};
    use serde::Serializer;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr,
        T::Err: Display,
        D: Deserializer<'de>,
    {
        TextValue::deserialize(deserializer).map(|TextValue(value)| value)
    }
}

/// Reads and writes a list: `#[serde(with = "text::list")]`.
pub(crate) mod list {
    use super::{Deserialize as _, Deserializer, Display, FromStr, TextValue};
    use serde::Serializer;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        values: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(T::to_string))
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
    where
        T: FromStr,
        T::Err: Display,
        D: Deserializer<'de>,
    {
        let values = Vec::<TextValue<T>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|TextValue(value)| value).collect())
    }
}

/// Reads and writes a value that may be absent: `#[serde(with = "text::optional")]`.
pub(crate) mod optional {
    use super::{Deserialize as _, Deserializer, Display, FromStr, TextValue};
    use serde::Serializer;

    #[expect(clippy::ref_option, reason = "serde asks for this form")]
    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr,
        T::Err: Display,
        D: Deserializer<'de>,
    {
        let value = Option::<TextValue<T>>::deserialize(deserializer)?;
        Ok(value.map(|TextValue(value)| value))
    }
}
