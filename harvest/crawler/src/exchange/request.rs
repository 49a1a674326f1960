//! The bytes of a request.
//!
//! Owns what goes over the wire to a host. Nothing that comes from a page, an order or a person can begin another line.

use std::ops::Range;

use url::{Position, Url};

/// A request to be sent to the host of a URI.
///
/// ```
/// use harvest_crawler::exchange::request::HttpRequest;
/// use url::{Position, Url};
///
/// let url = Url::parse("http://example.dk/a?b#c")?;
/// let request = HttpRequest::get(&url, &[("Accept", "*/*")])?.with_secret("Authorization", "Basic eDp5")?;
/// assert!(request.bytes().starts_with(b"GET /a?b HTTP/1.1\r\n"));
/// let recorded = String::from_utf8(request.recorded_bytes())?;
/// assert!(recorded.contains("Accept: */*") && !recorded.contains("eDp5"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    method: &'static str,
    target: Url,
    /// The fields without `Host`, in their order.
    fields: Vec<(String, String)>,
    bytes: Vec<u8>,
    /// The length of the body, at the end.
    body_length: usize,
    /// The parts that are never recorded, in their order, each with the words that say so.
    secrets: Vec<(Range<usize>, String)>,
}

/// A header field that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header field `{name}` has a line end or another control character in its value")]
pub struct InvalidHeaderField {
    name: String,
}

impl HttpRequest {
    /// Returns a request without a body: `GET` for the path and query of `url`, with `Host` and these fields in their
    /// order.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderField`] if a value or a name would break the message into other lines.
    pub fn get(url: &Url, fields: &[(&str, &str)]) -> Result<Self, InvalidHeaderField> {
        Self::new("GET", url, fields, &[])
    }

    /// Returns a `POST` of `body`, whose length is announced. Its media type has to be among the fields.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderField`] as for [`HttpRequest::get`].
    pub fn post_form(
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
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Ok(Self {
            method,
            target: without_private_parts(url),
            fields: fields.iter().map(owned).collect(),
            bytes,
            body_length: body.len(),
            secrets: Vec::new(),
        })
    }

    /// Names the whole URI in the request line, as a proxy is asked (RFC 9112 §3.2.2).
    #[must_use]
    pub fn in_absolute_form(mut self) -> Self {
        let origin = &self.target[..Position::BeforePath];
        let origin = origin.as_bytes().to_vec();
        self.insert(self.method.len() + " ".len(), origin);
        self
    }

    /// Puts bytes into the head, before all secrets.
    fn insert(&mut self, at: usize, bytes: Vec<u8>) {
        for (place, _) in &mut self.secrets {
            *place = place.start + bytes.len()..place.end + bytes.len();
        }
        self.bytes.splice(at..at, bytes);
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
        let place = begin..begin + field.len();
        self.insert(begin, field);
        self.secrets.insert(0, (place, name.to_owned()));
        self.fields.push((name.to_owned(), value.to_owned()));
        Ok(self)
    }

    /// Returns the method: `GET`.
    pub const fn method(&self) -> &'static str {
        self.method
    }

    /// Returns the URI that is asked for, without a user and a fragment.
    pub const fn target(&self) -> &Url {
        &self.target
    }

    /// Returns the fields but for `Host`, with a secret, for a protocol in which a message is no text.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.fields.iter();
        fields.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the body.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.bytes.len() - self.body_length..]
    }

    /// Marks the part of the body that is a secret: it is sent, and never recorded, and neither is the length of the
    /// body, which would tell that of the secret.
    #[must_use]
    pub fn with_secret_in_body(mut self, secret: Range<usize>) -> Self {
        let length = format!("Content-Length: {}\r\n", self.body_length);
        let body = self.bytes.len().saturating_sub(self.body_length);
        // The last field of the head, which ends with an empty line.
        let end = body.saturating_sub("\r\n".len());
        let field = end.saturating_sub(length.len())..end;
        self.secrets.push((field, "Content-Length".to_owned()));
        let secret = body + secret.start..body + secret.end;
        let words = "the password in the body".to_owned();
        self.secrets.push((secret, words));
        self
    }

    /// Returns exactly the bytes that are sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the block of the `request` record: the bytes that are sent, but for secrets.
    pub fn recorded_bytes(&self) -> Vec<u8> {
        let mut recorded = Vec::with_capacity(self.bytes.len());
        let mut from = 0;
        for (secret, _) in &self.secrets {
            recorded.extend_from_slice(&self.bytes[from..secret.start]);
            from = secret.end;
        }
        recorded.extend_from_slice(&self.bytes[from..]);
        recorded
    }

    /// Returns the parts that are sent and not recorded, in words.
    pub fn omitted_parts(&self) -> Vec<&str> {
        self.secrets
            .iter()
            .map(|(_, words)| words.as_str())
            .collect()
    }

    /// Returns whether the response has no body, whatever its head says.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// Returns a URI without the parts that are private to its reader: user, password, fragment.
fn without_private_parts(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    // Both fail for a URI without a host, which has no user and no password.
    let _has_none = url.set_username("").is_err() || url.set_password(None).is_err();
    url
}

/// Returns the value of `Referer` for a request that a page led to (RFC 9110 §10.1.3): the page without user, password
/// and fragment.
///
/// `None` if the page is not of the web, or came by TLS and the request goes out in clear.
pub fn referer_field(page: &str, target: &Url) -> Option<String> {
    let page = Url::parse(page).ok()?;
    let is_told = match page.scheme() {
        "http" => true,
        "https" => target.scheme() == "https",
        _ => false,
    };
    // A parsed URI is ASCII: other letters stand in it as escapes, and in the host as Punycode.
    is_told.then(|| without_private_parts(&page).into())
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
        let request = HttpRequest::get(
            &url("http://user:word@Example.dk:8080/a b?c=d e#f"),
            &[("User-Agent", "holdfast"), ("Accept", "*/*")],
        );
        assert_eq!(
            request.unwrap().bytes(),
            b"GET /a%20b?c=d%20e HTTP/1.1\r\nHost: example.dk:8080\r\nUser-Agent: holdfast\r\nAccept: */*\r\n\r\n"
        );
        let login = HttpRequest::post_form(
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
        let request = HttpRequest::get(&url("http://a/"), &[("Accept", "*/*")]).unwrap();
        let secret = request.clone().with_secret("Authorization", "Basic eDp5");
        let secret = secret.unwrap();
        let sent = b"GET / HTTP/1.1\r\nAuthorization: Basic eDp5\r\nHost: a\r\nAccept: */*\r\n\r\n";
        assert_eq!(secret.bytes(), sent);
        assert_eq!(secret.recorded_bytes(), request.bytes());
        assert_eq!(secret.omitted_parts(), ["Authorization"]);
        assert!(request.omitted_parts().is_empty());
        assert!(request.with_secret("Authorization", "a\r\nb").is_err());
    }

    /// Fails if a page tells a host more than its address: a user, a fragment, or anything at all after it came by TLS.
    #[test]
    fn referer_is_the_bare_page() {
        for (page, target, expected) in [
            ("http://a/b?c", "http://d/", Some("http://a/b?c")),
            ("http://u:p@a/b#c", "https://d/", Some("http://a/b")),
            ("https://a/b", "https://d/", Some("https://a/b")),
            ("https://a/b", "http://d/", None),
            (
                "http://\u{e6}.dk/\u{f8} \u{e5}?\u{e6}",
                "http://d/",
                Some("http://xn--6ca.dk/%C3%B8%20%C3%A5?%C3%A6"),
            ),
            ("http://a/\r\nX: y", "http://d/", Some("http://a/X:%20y")),
            ("dns:a", "http://d/", None),
            ("ftp://a/b", "http://d/", None),
            ("no URI", "http://d/", None),
        ] {
            assert_eq!(
                referer_field(page, &url(target)).as_deref(),
                expected,
                "{page:?} to {target}"
            );
        }
    }

    /// Fails if a protocol without text is given other fields, or another body, than go over the wire as text.
    #[test]
    fn parts_are_those_of_the_text() {
        let url = url("https://user:word@a:8/b?c#d");
        let request = HttpRequest::post_form(&url, &[("Accept", "*/*")], b"body").unwrap();
        let request = request.with_secret("Authorization", "x").unwrap();
        assert_eq!(request.target().as_str(), "https://a:8/b?c");
        let fields: Vec<_> = request.fields().collect();
        assert_eq!(
            fields,
            [
                ("Accept", "*/*"),
                ("Content-Length", "4"),
                ("Authorization", "x")
            ]
        );
        assert_eq!((request.method(), request.body()), ("POST", &b"body"[..]));
    }

    /// Fails if the password of a form is recorded, its length can be told, or anything else is left out.
    #[test]
    fn secret_in_body_is_not_recorded() {
        let fields = [("Accept", "*/*")];
        let request =
            HttpRequest::post_form(&url("http://a/in"), &fields, b"u=me&p=hush&x=1").unwrap();
        let sent = request.bytes().to_vec();
        let secret = request.with_secret_in_body(7..11);
        let secret = secret.with_secret("Authorization", "Basic eDp5").unwrap();
        assert!(
            secret
                .bytes()
                .ends_with(b"\r\nContent-Length: 15\r\n\r\nu=me&p=hush&x=1")
        );
        assert_eq!(
            secret.bytes().len(),
            sent.len() + "Authorization: Basic eDp5\r\n".len()
        );
        assert_eq!(
            secret.recorded_bytes(),
            b"POST /in HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\nu=me&p=&x=1"
        );
        assert_eq!(
            secret.omitted_parts(),
            [
                "Authorization",
                "Content-Length",
                "the password in the body"
            ]
        );
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
                HttpRequest::get(&url("http://a/"), &[(name, value)]).is_err(),
                "{name}: {value:?}"
            );
        }
    }
}
