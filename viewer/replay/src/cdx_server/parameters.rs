//! The parameters of a request: a query string, and a form if one was posted.
//!
//! Owns their decoding: `+` is a blank, `%41` a byte, and what is no escape stays. Values are bytes, because archived
//! URLs are; a caller that needs text asks for it.

use archive_formats::date::{Fill, Stamp};

use super::{CdxRequestError, MAX_PARAMETERS, MAX_REQUEST};

/// The decoded parameters of a request, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Parameters {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Parameters {
    /// Decodes a query string, without its `?`, and the body of a posted form.
    pub(super) fn decode_query(query: &[u8], form: Option<&[u8]>) -> Result<Self, CdxRequestError> {
        let form = form.unwrap_or_default();
        let length = query.len().saturating_add(form.len());
        if length > MAX_REQUEST {
            return Err(CdxRequestError::TooLong(length));
        }
        let mut pairs = Vec::new();
        let parts = query
            .split(|b| *b == b'&')
            .chain(form.split(|b| *b == b'&'));
        for part in parts.filter(|part| !part.is_empty()) {
            if pairs.len() >= MAX_PARAMETERS {
                return Err(CdxRequestError::TooManyParameters);
            }
            let mut sides = part.splitn(2, |b| *b == b'=');
            let mut next = || decode_percent(sides.next().unwrap_or_default());
            pairs.push((next(), next()));
        }
        Ok(Self { pairs })
    }

    /// Returns the first value of a parameter.
    pub(super) fn first(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// Returns all values of a parameter.
    pub(super) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let wanted = move |(n, _): &&(Vec<u8>, Vec<u8>)| n == name.as_bytes();
        self.pairs
            .iter()
            .filter(wanted)
            .map(|(_, value)| value.as_slice())
    }

    /// Returns the first value as text; `None` where it is absent or empty.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<&str>, CdxRequestError> {
        let value = self
            .first(name)
            .map(|value| text(name, value))
            .transpose()?;
        Ok(value.filter(|value| !value.is_empty()))
    }

    /// Returns all values as text, without the empty ones.
    pub(super) fn texts(&self, name: &'static str) -> Result<Vec<&str>, CdxRequestError> {
        let values = self.all(name).filter(|value| !value.is_empty());
        values.map(|value| text(name, value)).collect()
    }

    /// Returns the value of a switch: `None` where it is absent.
    pub(super) fn switch(&self, name: &'static str) -> Result<Option<bool>, CdxRequestError> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(Some(true)),
            "false" | "0" | "no" | "off" => Ok(Some(false)),
            _ => Err(CdxRequestError::wrong_value(name, value, "true or false")),
        }
    }

    /// Returns a whole number, which may be negative.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<i64>, CdxRequestError> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        let digits = value.strip_prefix('-').unwrap_or(value);
        let valid = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let number = value.parse().ok().filter(|_| valid);
        number.map(Some).ok_or_else(|| {
            CdxRequestError::wrong_value(name, value, "a whole number of at most 18 digits")
        })
    }

    /// Returns a whole number that is not negative.
    pub(super) fn count(&self, name: &'static str) -> Result<Option<u64>, CdxRequestError> {
        let Some(number) = self.number(name)? else {
            return Ok(None);
        };
        let wanted = "a number that is not negative";
        let count = u64::try_from(number).ok();
        count
            .map(Some)
            .ok_or_else(|| CdxRequestError::wrong_value(name, &number.to_string(), wanted))
    }

    /// Returns one end of a span of time.
    pub(super) fn bounded_number(
        &self,
        name: &'static str,
        fill: Fill,
    ) -> Result<Option<Stamp>, CdxRequestError> {
        let text = self.text(name)?;
        let stamp = text.map(|text| Stamp::from_query(text, fill)).transpose();
        stamp.map_err(|why| CdxRequestError::Date {
            parameter: name,
            why,
        })
    }
}

fn text<'a>(name: &'static str, value: &'a [u8]) -> Result<&'a str, CdxRequestError> {
    str::from_utf8(value)
        .ok()
        .ok_or(CdxRequestError::NotText(name))
}

/// Undoes the encoding of a form, once.
pub(super) fn decode_percent(text: &[u8]) -> Vec<u8> {
    let mut bytes = text.iter();
    let mut out = Vec::with_capacity(text.len());
    while let Some(&byte) = bytes.next() {
        let escape = match bytes.as_slice() {
            [high, low, ..] if byte == b'%' => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match (byte, escape) {
            (_, Some((high, low))) => {
                out.push(high * 16 + low);
                bytes.next();
                bytes.next();
            }
            (b'+', None) => out.push(b' '),
            (other, None) => out.push(other),
        }
    }
    out
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if an escape is undone twice, or text that is no escape is lost.
    #[test]
    fn form_encoding_is_undone_once() {
        for (encoded, expected) in [
            (&b"a+b%20c"[..], &b"a b c"[..]),
            (b"%2525", b"%25"),
            (b"100%", b"100%"),
            (b"%4", b"%4"),
            (b"%zz%41", b"%zzA"),
            (b"%e6%F8", b"\xe6\xf8"),
        ] {
            assert_eq!(decode_percent(encoded), expected);
        }
    }

    /// Fails if a form is not read behind the query string, or repeated parameters are lost.
    #[test]
    fn repeated_parameters_keep_their_order() {
        let query = b"&filter=a&url=http%3A%2F%2Fa%2F%3Fx%3D1%26y&flag&filter=b=c&&";
        let read = Parameters::decode_query(query, Some(b"filter=d&empty=")).unwrap();
        assert_eq!(read.texts("filter").unwrap(), ["a", "b=c", "d"]);
        assert_eq!(read.first("url"), Some(&b"http://a/?x=1&y"[..]));
        assert_eq!(read.first("flag"), Some(&b""[..]));
        assert_eq!(read.text("empty").unwrap(), None);
        assert_eq!(read.first("absent"), None);
    }

    /// Fails if a request can be longer, or have more parameters, than memory was planned for.
    #[test]
    fn oversized_requests_are_refused() {
        let long = vec![b'a'; MAX_REQUEST + 1];
        assert!(matches!(
            Parameters::decode_query(&long, None),
            Err(CdxRequestError::TooLong(_))
        ));
        let many = b"a=1&".repeat(MAX_PARAMETERS + 1);
        assert!(matches!(
            Parameters::decode_query(&many, None),
            Err(CdxRequestError::TooManyParameters)
        ));
    }

    /// Fails if nonsense passes for a switch or a number.
    #[test]
    fn nonsense_switches_and_numbers_are_refused() {
        let query = b"a=maybe&b=12x&c=99999999999999999999&d=-&e=+5&f=-3&g=TRUE";
        let read = Parameters::decode_query(query, None).unwrap();
        assert!(read.switch("a").is_err());
        for name in ["b", "c", "d", "e"] {
            assert!(read.number(name).is_err(), "{name}");
        }
        assert_eq!(read.number("f").unwrap(), Some(-3));
        assert_eq!(read.switch("g").unwrap(), Some(true));
        assert_eq!(read.switch("absent").unwrap(), None);
    }
}
