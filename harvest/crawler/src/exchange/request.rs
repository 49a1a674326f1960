//! The bytes of a request.
//!
//! Owns what goes over the wire to a host. Nothing that comes from a page, an order or a person can begin another line.

use url::Url;

/// A request to be sent to the host of a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    method: &'static str,
    bytes: Vec<u8>,
    /// Where a field with a secret stands.
    secret: std::ops::Range<usize>,
}

/// A header field that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header field `{name}` has a line end or another control character in its value")]
pub struct InvalidHeaderField {
    name: String,
}

impl Request {
    /// A request without a body: `GET` for the path and query of `url`, with `Host` and these fields in their order.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderField`] if a value or a name would break the message into other lines.
    pub fn get(url: &Url, fields: &[(&str, &str)]) -> Result<Self, InvalidHeaderField> {
        Self::new("GET", url, fields, &[])
    }

    /// A `POST` of `body`, whose length is announced. Its media type has to be among the fields.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderField`] as for [`Request::get`].
    pub fn post(
        url: &Url,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Self, InvalidHeaderField> {
        let length = body.len().to_string();
        let mut fields = fields.to_vec();
        fields.push(("Content-Length", &length));
        Self::new("POST", url, &fields, body)
    }

    fn new(
        method: &'static str,
        url: &Url,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Self, InvalidHeaderField> {
        // A parsed URL has neither blanks nor line ends in its parts.
        let mut head = format!("{method} {}", url.path());
        if let Some(query) = url.query() {
            head.push('?');
            head.push_str(query);
        }
        head.push_str(" HTTP/1.1\r\nHost: ");
        head.push_str(url.host_str().unwrap_or_default());
        if let Some(port) = url.port() {
            head.push(':');
            head.push_str(&port.to_string());
        }
        head.push_str("\r\n");
        for (name, value) in fields {
            let breaks = |text: &str| text.chars().any(char::is_control);
            if breaks(value) || breaks(name) || name.contains([':', ' ']) || name.is_empty() {
                return Err(InvalidHeaderField {
                    name: name.escape_default().to_string(),
                });
            }
            for text in [name, ": ", value, "\r\n"] {
                head.push_str(text);
            }
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        Ok(Self {
            method,
            bytes,
            secret: 0..0,
        })
    }

    /// Puts a field with a secret behind the request line: it is sent, and never recorded.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderField`] if the value would break the message into other lines.
    pub fn with_secret(mut self, name: &str, value: &str) -> Result<Self, InvalidHeaderField> {
        if value.chars().any(char::is_control) {
            return Err(InvalidHeaderField {
                name: name.escape_default().to_string(),
            });
        }
        let line_end = memchr::memchr(b'\n', &self.bytes);
        let begin = line_end.map_or(self.bytes.len(), |at| at + 1);
        let field = format!("{name}: {value}\r\n").into_bytes();
        self.secret = begin..begin + field.len();
        self.bytes.splice(begin..begin, field);
        Ok(self)
    }

    /// Exactly what is sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The block of its `request` record: what is sent, but for a secret.
    pub fn recorded_bytes(&self) -> Vec<u8> {
        let before = self.bytes.get(..self.secret.start).unwrap_or_default();
        let behind = self.bytes.get(self.secret.end..).unwrap_or_default();
        [before, behind].concat()
    }

    /// Whether the response has no body, whatever its head says.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// Fails if a byte of a request is not what servers expect, or a fragment or a user goes over the wire.
    #[test]
    fn request_is_written_as_servers_read_it() {
        let request = Request::get(
            &url("http://user:word@Example.dk:8080/a b?c=d e#f"),
            &[("User-Agent", "holdfast"), ("Accept", "*/*")],
        );
        assert_eq!(
            request.unwrap().bytes(),
            b"GET /a%20b?c=d%20e HTTP/1.1\r\nHost: example.dk:8080\r\nUser-Agent: holdfast\r\nAccept: */*\r\n\r\n"
        );
        let login = Request::post(
            &url("https://[::1]/login"),
            &[("Content-Type", "text/plain")],
            b"a=b",
        );
        assert_eq!(
            login.unwrap().bytes(),
            b"POST /login HTTP/1.1\r\nHost: [::1]\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\na=b"
        );
    }

    /// Fails if a secret is not sent, or is recorded.
    #[test]
    fn secret_is_sent_and_not_recorded() {
        let request = Request::get(&url("http://a/"), &[("Accept", "*/*")]).unwrap();
        let secret = request.clone().with_secret("Authorization", "Basic eDp5");
        let secret = secret.unwrap();
        let sent = b"GET / HTTP/1.1\r\nAuthorization: Basic eDp5\r\nHost: a\r\nAccept: */*\r\n\r\n";
        assert_eq!(secret.bytes(), sent);
        assert_eq!(secret.recorded_bytes(), request.bytes());
        assert!(request.with_secret("Authorization", "a\r\nb").is_err());
    }

    /// Fails if a value from a page can add a header field or a second request.
    #[test]
    fn value_with_line_end_is_refused() {
        for (name, value) in [
            ("Referer", "http://a/\r\nX: y"),
            ("Referer", "a\nb"),
            ("Cookie", "a\0b"),
            ("X y", "z"),
            ("X:", "z"),
            ("", "z"),
        ] {
            assert!(
                Request::get(&url("http://a/"), &[(name, value)]).is_err(),
                "{name}: {value:?}"
            );
        }
    }
}
