//! The captures of a collection, as a viewer shows them to anybody: asked of its replay listener.
//!
//! Owns the request and the reading of the answer, which is whole or an error. Not promised: a listener with TLS; the
//! refusal says how `curl` asks it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use archive_formats::cdx::{Capture, Format};
use archive_formats::http::{ChunkedReader, Head};
use tools_terminal::exit::{Exit, Failure};
use url::Url;

/// The largest head of an answer, in bytes.
const LARGEST_HEAD: usize = 64 << 10;

/// The longest line of an answer, in bytes.
const LONGEST_LINE: u64 = 4 << 20;

/// The most bytes of a refusal that are shown.
const SHOWN: u64 = 2000;

/// A question to the replay listener.
#[derive(Debug)]
pub(super) struct Question<'a> {
    /// The beginning of the addresses of the listener.
    pub(super) listener: &'a str,
    pub(super) collection: &'a str,
    /// The parts of the question, by the names that CDX servers have.
    pub(super) parameters: &'a [(&'a str, String)],
    /// The time to wait for the next bytes of the answer.
    pub(super) patience: Duration,
}

impl Question<'_> {
    /// Gives each capture of the answer to `take`.
    pub(super) fn ask_collection(
        &self,
        mut take: impl FnMut(Capture) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let url = self.url()?;
        let unreachable = |error: &dyn std::fmt::Display| {
            let listener = self.listener;
            unreached(format!("the replay listener {listener}: {error}"))
        };
        let stream = self.send(&url).map_err(|error| unreachable(&error))?;
        let mut input = BufReader::new(stream);
        let head =
            Head::read_head(&mut input, LARGEST_HEAD).map_err(|error| unreachable(&error))?;
        let mut body: Box<dyn BufRead> = match head.content_length() {
            _ if head.is_chunked() => Box::new(BufReader::new(ChunkedReader::new(input))),
            Some(length) => Box::new(LengthCheckReader {
                input,
                left: length,
            }),
            None => return Err(unreachable(&"its answer does not say where it ends")),
        };
        match head.status() {
            Some(200) => {}
            status => return Err(self.refused(status, body)),
        }
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = body.by_ref().take(LONGEST_LINE);
            let read = limited.read_until(b'\n', &mut line);
            if read.map_err(|error| unreachable(&error))? == 0 {
                return Ok(());
            }
            if line.pop() != Some(b'\n') {
                return Err(unreachable(&"a line of its answer has no end"));
            }
            let text = str::from_utf8(&line).map_err(|error| unreachable(&error))?;
            let capture = Format::Cdxj.read_line(text);
            take(capture.map_err(|error| unreachable(&error))?)?;
        }
    }

    fn url(&self) -> Result<Url, Failure> {
        let wrong = |why: &str| {
            let listener = self.listener;
            Failure::new(
                Exit::Settings,
                format!("the client file's endpoints: replay = {listener:?}: {why}"),
            )
        };
        let mut url = Url::parse(self.listener).map_err(|error| wrong(&error.to_string()))?;
        url.path_segments_mut()
            .map_err(|()| wrong("it is not the address of a listener"))?
            .pop_if_empty()
            .extend([self.collection, "cdx"]);
        url.query_pairs_mut().extend_pairs(self.parameters);
        match url.scheme() {
            "http" => Ok(url),
            "https" => {
                let quoted = url.as_str().replace('\'', "%27");
                Err(wrong(&format!(
                    "--collection cannot ask a listener with TLS; ask it with: curl --fail '{quoted}'"
                )))
            }
            _ => Err(wrong("it begins neither with http:// nor with https://")),
        }
    }

    fn send(&self, url: &Url) -> io::Result<TcpStream> {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(80);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
        let plain = host.trim_start_matches('[').trim_end_matches(']');
        for address in (plain, port).to_socket_addrs()? {
            let mut stream = match TcpStream::connect_timeout(&address, self.patience) {
                Ok(stream) => stream,
                Err(error) => {
                    last = error;
                    continue;
                }
            };
            stream.set_read_timeout(Some(self.patience))?;
            stream.set_write_timeout(Some(self.patience))?;
            let path = url.path();
            let query = url.query().unwrap_or_default();
            let request = format!(
                "GET {path}?{query} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(request.as_bytes())?;
            return Ok(stream);
        }
        Err(last)
    }

    /// Returns the failure that a refusal of the listener is.
    fn refused(&self, status: Option<u16>, body: impl Read) -> Failure {
        let mut said = Vec::new();
        // The words of the answer are no more than an explanation.
        if body.take(SHOWN).read_to_end(&mut said).is_err() {
            said.clear();
        }
        let said = String::from_utf8_lossy(&said);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let code = status.unwrap_or(0);
        let message = format!("the collection {}: {code}: {said}", self.collection);
        match code {
            400 => Failure::wrong_usage(message),
            401 | 403 | 451 => Failure::new(Exit::Refused, message),
            500.. => unreached(message),
            _ => Failure::because_failed(message),
        }
    }
}

fn unreached(message: String) -> Failure {
    Failure::new(Exit::Unreachable, message)
}

/// A body of known length: one that ends before is an error.
struct LengthCheckReader<R> {
    input: R,
    left: u64,
}

impl<R: BufRead> Read for LengthCheckReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(out.len());
        for (to, from) in out.iter_mut().zip(available) {
            *to = *from;
        }
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for LengthCheckReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Ok(&[]);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let available = self.input.fill_buf()?;
        if available.is_empty() {
            let said = format!("its answer was cut, {} bytes before its end", self.left);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, said));
        }
        let some = available.len().min(most);
        Ok(&available[..some])
    }

    fn consume(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count as u64);
        self.input.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    const LINE: &str = "org,a)/ 20200101000000 {\"url\": \"http://a.org/\"}\n";

    /// Answers one request with some bytes; gives what was asked, and what the asker made of the answer.
    fn asked(answer: String) -> (String, Result<usize, Failure>) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let listener = format!("http://{}/", server.local_addr().unwrap());
        let serving = thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut request = String::new();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            while lines.read_line(&mut request).unwrap() > 2 {}
            stream.write_all(answer.as_bytes()).unwrap();
            request
        });
        let question = Question {
            listener: &listener,
            collection: "my news",
            parameters: &[("url", "http://a.org/?b=c&d".to_owned())],
            patience: Duration::from_mins(1),
        };
        let mut count = 0;
        let answered = question.ask_collection(|capture| {
            assert_eq!(capture.original.as_deref(), Some("http://a.org/"));
            count += 1;
            Ok(())
        });
        (serving.join().unwrap(), answered.map(|()| count))
    }

    /// Fails if the refusal of a listener with TLS does not say how to ask it, or another scheme passes for one of
    /// these.
    #[test]
    fn tls_listener_is_refused_with_command() {
        let refused = |listener: &str| {
            let question = Question {
                listener,
                collection: "it's news",
                parameters: &[("url", "http://a.org/?b='c'".to_owned())],
                patience: Duration::from_mins(1),
            };
            let failure = question.ask_collection(|_capture| Ok(())).unwrap_err();
            assert_eq!(failure.exit, Exit::Settings);
            failure.message
        };
        let message = refused("https://viewer.example:8443/");
        let command = "curl --fail 'https://viewer.example:8443/it%27s%20news/cdx?url=http%3A%2F%2Fa.org%2F%3Fb%3D%27c%27'";
        assert!(message.ends_with(command), "{message}");
        let message = refused("ftp://viewer.example/");
        assert!(message.ends_with("https://"), "{message}");
    }

    /// Fails if a cut answer passes for a whole one, or a refusal for an answer.
    #[test]
    fn answer_is_whole_or_an_error() {
        let head = "HTTP/1.1 200 OK\r\n";
        let check = |answer: String, expected: Result<usize, (Exit, &str)>| {
            let (request, answered) = asked(answer);
            let line = "GET /my%20news/cdx?url=http%3A%2F%2Fa.org%2F%3Fb%3Dc%26d HTTP/1.1\r\n";
            assert!(request.starts_with(line), "{request}");
            match (answered, expected) {
                (Ok(count), Ok(expected)) => assert_eq!(count, expected),
                (Err(failure), Err((exit, said))) => {
                    assert_eq!(failure.exit, exit, "{failure}");
                    assert!(failure.message.contains(said), "{said}: {failure}");
                }
                (answered, expected) => panic!("{answered:?} but {expected:?}"),
            }
        };
        let length = LINE.len();
        check(
            format!("{head}Content-Length: {length}\r\n\r\n{LINE}"),
            Ok(1),
        );
        let cut = format!("{head}Content-Length: {}\r\n\r\n{LINE}", length + 9);
        check(cut, Err((Exit::Unreachable, "cut")));
        let chunk = format!("{length:x}\r\n{LINE}\r\n");
        let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunk}{chunk}");
        check(format!("{chunked}0\r\n\r\n"), Ok(2));
        check(chunked, Err((Exit::Unreachable, "http://")));
        check(
            format!("{head}\r\n{LINE}"),
            Err((Exit::Unreachable, "ends")),
        );
        let absent = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nno\nx".to_owned();
        check(absent, Err((Exit::Failed, "no x")));
        let down = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned();
        check(down, Err((Exit::Unreachable, "503")));
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx\n".to_owned();
        check(text, Err((Exit::Unreachable, "http://")));
    }
}
