//! Hosts of tests that answer by the whole request.

use super::*;

/// The requests that a host got, heads with bodies, in order.
pub(super) type Requests = Arc<Mutex<Vec<String>>>;

/// Serves on an address of loopback; returns the base URI and the requests.
pub(super) async fn serve_requests(
    address: &str,
    answer: impl Fn(&str) -> String + Send + Sync + 'static,
) -> (Url, Requests) {
    let listener = TcpListener::bind((address, 0)).await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let requests = Requests::default();
    let told = Arc::clone(&requests);
    let answer = Arc::new(answer);
    tokio::task::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::task::spawn(talk(stream, Arc::clone(&answer), Arc::clone(&told)));
        }
    });
    (Url::parse(&base).unwrap(), requests)
}

async fn talk(
    mut stream: TcpStream,
    answer: Arc<impl Fn(&str) -> String + Send + Sync + 'static>,
    requests: Requests,
) {
    while let Some(request) = read_request(&mut stream).await {
        let response = answer(&request);
        requests.lock().push(request);
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let head = read_head(stream).await?;
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some(head + std::str::from_utf8(&body).unwrap())
}

/// Returns a response with further fields in its head.
pub(super) fn page_with(fields: &str, body: &str) -> String {
    page(body).replacen("\r\n", &format!("\r\n{fields}"), 1)
}

/// Returns the requests of a crawl for a path.
pub(super) fn requests_for(requests: &Requests, path: &str) -> Vec<String> {
    let requests = requests.lock();
    let asked = requests
        .iter()
        .filter(|request| request.split(' ').nth(1) == Some(path));
    asked.cloned().collect()
}

/// Returns the blocks of the records of one kind, by URI.
pub(super) fn blocks(directory: &Path, kind: WarcType) -> BTreeMap<String, String> {
    let mut blocks = BTreeMap::new();
    for entry in fs::read_dir(directory.join("warcs")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let mut reader = WarcReader::new(bytes.as_slice());
        while let Some(mut record) = reader.next_record().unwrap() {
            if record.kind() == kind {
                let uri = record.header().get("WARC-Target-URI").unwrap_or_default();
                let uri = String::from_utf8(uri.to_vec()).unwrap();
                let mut block = Vec::new();
                record.read_to_end(&mut block).unwrap();
                blocks.insert(uri, String::from_utf8_lossy(&block).into_owned());
            }
        }
    }
    blocks
}
