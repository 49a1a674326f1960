//! The bytes of the wire, as a host has seen and sent them, and the blocks of the records.

use super::*;

/// The bytes of each message that a host got or sent.
type RequestBytes = Arc<Mutex<BTreeSet<Vec<u8>>>>;

/// A response with chunks, an interim response before it, and fields that a parser would write otherwise.
const CHUNKED: &[u8] = b"HTTP/1.1 200  Fine\r\nCONTENT-type:text/html\r\nX-Odd : a\tb\r\nTransfer-Encoding: chunked\r\n\r\n\
    1f;name=value\r\n<a href=/two>2</a> <a href=/3>3\r\n5\r\n</a>\n\r\n0\r\nTrailer: t\r\n\r\n";

/// A response with bare line feeds, which ends with its connection.
const BARE: &[u8] = b"HTTP/1.0 200 OK\nContent-Type: text/plain\n\nbare\n";

/// A body without any head.
const OLD: &[u8] = b"<p>HTTP/0.9</p>\n";

async fn host() -> (Url, RequestBytes) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let messages = RequestBytes::default();
    let told = Arc::clone(&messages);
    tokio::task::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::task::spawn(talk(stream, Arc::clone(&told)));
        }
    });
    (Url::parse(&base).unwrap(), messages)
}

async fn talk(mut stream: TcpStream, messages: RequestBytes) {
    loop {
        let Some(head) = read_head(&mut stream).await else {
            return;
        };
        let (response, closes) = match path_of(&head) {
            "/" => (CHUNKED, false),
            "/two" => (BARE, true),
            "/3" => (OLD, true),
            _ => (
                &b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"[..],
                false,
            ),
        };
        messages
            .lock()
            .extend([head.clone().into_bytes(), response.to_vec()]);
        if head.starts_with("GET / ") {
            // An interim response is no part of the response.
            stream
                .write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </3>\r\n\r\n")
                .await
                .unwrap();
        }
        // Cut anywhere on its way.
        for piece in response.chunks(7) {
            stream.write_all(piece).await.unwrap();
            stream.flush().await.unwrap();
        }
        if closes {
            return;
        }
    }
}

/// Fails if the block of a request or a response is not, byte for byte, the message that went over the wire.
#[tokio::test]
async fn blocks_are_the_bytes_of_the_wire() {
    let (base, messages) = host().await;
    let directory = tempfile::tempdir().unwrap();
    let outcome = crawl(settings(
        directory.path(),
        std::slice::from_ref(&base),
        "retry.max_tries = 1",
    ))
    .await;
    assert_eq!(
        outcome.progress.fetched,
        3,
        "{:?}",
        statuses(directory.path(), &base)
    );
    let mut blocks = BTreeSet::new();
    for entry in fs::read_dir(directory.path().join("warcs")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let mut reader = WarcReader::new(bytes.as_slice());
        while let Some(mut record) = reader.next_record().unwrap() {
            if matches!(record.kind(), WarcType::Request | WarcType::Response) {
                let mut block = Vec::new();
                record.read_to_end(&mut block).unwrap();
                blocks.insert(block);
            }
        }
    }
    assert_eq!(blocks, *messages.lock());
    let statuses = statuses(directory.path(), &base);
    let expected = [("/", 200), ("/two", 200), ("/3", 200), ("/robots.txt", 404)];
    assert_eq!(
        statuses,
        expected
            .map(|(path, status)| (path.to_owned(), status))
            .into()
    );
}
