//! curl, and what it was answered.

use std::path::Path;
use std::process::{Command, Stdio};

/// An answer over HTTP.
#[derive(Clone, Debug)]
pub struct Answer {
    /// 0 if no server answered.
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the value of a field that stands at most once.
    #[track_caller]
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self
            .fields
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(
            values.next(),
            None,
            "{name} stands twice: {:?}",
            self.fields
        );
        value
    }

    /// Returns the body as text; bytes that are none are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:?}\n{}", self.fields, self.text());
        self
    }
}

/// Asks for a URL with curl, with words more. Follows no redirect and believes no proxy of the environment.
pub fn curl(url: &str, words: &[&str]) -> Answer {
    let output = Command::new("curl")
        .args(["--silent", "--include", "--noproxy", "*", "--http1.1"])
        .args(["--globoff", "--path-as-is", "--max-time", "60"])
        .args(words)
        .arg(url)
        .stdin(Stdio::null())
        .output()
        .expect("curl");
    read(&output.stdout)
}

/// Asks for a URL with curl, with words more, and writes the body into a file. Returns the status.
///
/// # Panics
///
/// Panics if the body is cut.
#[track_caller]
pub fn curl_into(file: &Path, url: &str, words: &[&str]) -> u16 {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--noproxy", "*", "--http1.1"])
        .args(["--globoff", "--path-as-is", "--max-time", "300"])
        .args(["--write-out", "%{http_code}", "--output"])
        .arg(file)
        .args(words)
        .arg(url)
        .stdin(Stdio::null())
        .output()
        .expect("curl");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{url}: {said}");
    let status = String::from_utf8_lossy(&output.stdout);
    status.trim().parse().expect("a status")
}

/// Returns whether curl itself undoes all of these content encodings, by the names of its features.
pub fn curl_undoes(features: &[&str]) -> bool {
    let output = Command::new("curl").arg("--version").output();
    let said = output.expect("curl").stdout;
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().find_map(|line| line.strip_prefix("Features:"));
    let known: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    features.iter().all(|feature| known.contains(feature))
}

/// Asks for a URL through a proxy, whose authority is believed, with words more.
pub fn curl_through(proxy: &str, url: &str, words: &[&str]) -> Answer {
    let mut all = vec!["--noproxy", "", "--proxy", proxy];
    all.extend(["--suppress-connect-headers", "--insecure"]);
    all.extend(words);
    curl(url, &all)
}

/// Reads the heads that curl has written, of which the last one counts, and the body.
fn read(mut bytes: &[u8]) -> Answer {
    let mut answer = Answer {
        status: 0,
        fields: Vec::new(),
        body: Vec::new(),
    };
    while bytes.starts_with(b"HTTP/") {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.expect("the end of a head");
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        bytes = &bytes[end + 4..];
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        answer.status = status.and_then(|text| text.parse().ok()).expect("a status");
        answer.fields = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        if !(100..200).contains(&answer.status) {
            break;
        }
    }
    bytes.clone_into(&mut answer.body);
    answer
}
