//! Connections that are kept for the next request, by hosts that do not keep them.

use super::*;

/// The way of a host with a connection, behind each response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionHabit {
    Keeps,
    /// The host says that it closes the connection, and closes it.
    ClosesAloud,
    /// The host closes the connection without saying so.
    Closes,
    /// The host answers in HTTP/1.0, and closes the connection.
    IsOld,
    /// The host sends a page that nobody has asked for.
    SendsMore,
    /// The host complains that no request has come, and closes the connection.
    Complains,
    /// The host complains when the next request comes, and closes the connection.
    ComplainsLate,
}

const COMPLAINT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// Serves a site of a page with two leaves; returns its base URI and the number of its connections.
async fn host(habit: ConnectionHabit) -> (Url, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let connections = Arc::<Mutex<usize>>::default();
    let counted = Arc::clone(&connections);
    tokio::task::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            *counted.lock() += 1;
            // The other end may have left.
            tokio::task::spawn(async move { drop(talk(stream, habit).await) });
        }
    });
    (Url::parse(&base).unwrap(), connections)
}

async fn talk(mut stream: TcpStream, habit: ConnectionHabit) -> std::io::Result<()> {
    let mut count = 0;
    loop {
        let Some(head) = read_head(&mut stream).await else {
            return Ok(());
        };
        count += 1;
        if habit == ConnectionHabit::ComplainsLate && count == 2 {
            return stream.write_all(COMPLAINT).await;
        }
        let mut response = match path_of(&head) {
            "/" => page("<a href=/a>a</a> <a href=/b>b</a>"),
            path => page(path),
        };
        if habit == ConnectionHabit::IsOld {
            response = response.replace("HTTP/1.1", "HTTP/1.0");
        }
        if habit == ConnectionHabit::ClosesAloud {
            response = response.replace("\r\n\r\n", "\r\nConnection: Close\r\n\r\n");
        }
        stream.write_all(response.as_bytes()).await?;
        match habit {
            ConnectionHabit::Keeps | ConnectionHabit::ComplainsLate => {}
            ConnectionHabit::Closes | ConnectionHabit::ClosesAloud | ConnectionHabit::IsOld => {
                return Ok(());
            }
            ConnectionHabit::SendsMore => stream.write_all(page("evil").as_bytes()).await?,
            ConnectionHabit::Complains => return stream.write_all(COMPLAINT).await,
        }
    }
}

/// Fails if a page is lost, tried again or another one because its host does not keep a connection, or one that it
/// keeps is not used.
#[tokio::test]
async fn lost_connections_cost_no_try() {
    use ConnectionHabit as H;
    for (habit, connections) in [
        (H::Keeps, 1),
        (H::ClosesAloud, 4),
        (H::Closes, 4),
        (H::IsOld, 4),
        (H::SendsMore, 4),
        (H::Complains, 4),
        (H::ComplainsLate, 4),
    ] {
        let (base, made) = host(habit).await;
        let directory = tempfile::tempdir().unwrap();
        let seeds = std::slice::from_ref(&base);
        crawl(settings(directory.path(), seeds, "retry.max_tries = 2")).await;
        let lines = log(directory.path());
        assert_eq!(lines.len(), 4, "{habit:?}");
        for line in lines {
            let path = line.uri.replace(base.as_str(), "/");
            let body = if path == "/" { 33 } else { path.len() as u64 };
            assert_eq!(
                (line.status, line.size),
                (200, Some(body)),
                "{habit:?} {path}"
            );
            assert_eq!(
                line.annotations.len(),
                1,
                "{habit:?} {:?}",
                line.annotations
            );
        }
        assert_eq!(
            recorded(directory.path(), WarcType::Response).len(),
            4,
            "{habit:?}"
        );
        assert_eq!(*made.lock(), connections, "{habit:?}");
    }
}
