//! The index of a whole archive: what is stored is found, what people take away is not, and all of it comes back when
//! the database is gone.

use std::time::Duration;

use archive_daemon::Chance;
use archive_formats::cdx::query::{CaptureQuery, KeyMatch, MatchKind};
use archive_model::FileName;
use archive_rpc::{ExpectedIdentity, Role, RpcLimits, connect_lazy};
use index_client::{
    CaptureSearch, ExportFormat, IndexCallError, IndexClient, IndexLimits, IndexStatus, SetName,
};

use super::batch::pages;
use super::feed::{remove, restore};
use super::visits::{name, store};
use super::world::{Cluster, LONG, REPOSITORY, eventually, on_a_cluster};

pub(super) const INDEX: &str = "index-kb";

/// Starts the index on the port and the data that it had before, if it ran before.
pub(super) async fn start_index(cluster: &mut Cluster) {
    if !cluster.path("index-kb.pem").try_exists().unwrap() {
        cluster.certify(INDEX, &["index/kb"]);
    }
    let at = cluster.path("");
    let at = at.display();
    let settings = format!(
        "[daemon]\ndrain = '4 s'\n[rpc]\nlisten = '{}'\ncertificate = '{at}/{INDEX}.pem'\nkey = '{at}/{INDEX}.key'\n\
         authorities = '{at}/authority.pem'\n[index]\ndata = '{at}/captures'\nrepository = '{}'\n\
         trust = '{at}/trust.json'\ncompare = '1 s'\n",
        cluster.address(INDEX),
        cluster.address(REPOSITORY)
    );
    let daemon = cluster.daemon(Chance::system_chance());
    let settings = toml::from_str(&settings).unwrap();
    let address = index_server::serve_index(settings, daemon.clone())
        .await
        .unwrap();
    cluster.add_running(INDEX, daemon, address);
}

fn index(cluster: &Cluster, grant: &str) -> IndexClient {
    let address = cluster.address(INDEX);
    let credentials = cluster.credentials(grant);
    let expected = ExpectedIdentity::any_of_role(Role::Index);
    let channel = connect_lazy(&address, &credentials, &expected, &RpcLimits::default());
    IndexClient::new(channel.unwrap(), IndexLimits::default())
}

/// Returns the files in which the index has captures of one page, one for each capture.
async fn captures(cluster: &Cluster, url: &str) -> Result<Vec<String>, IndexCallError> {
    let keys = KeyMatch::for_url(MatchKind::Exact, url).unwrap();
    let query = CaptureQuery::new(keys);
    let reader = index(cluster, "reader/anna");
    let mut found = reader.query(&query).await?;
    let mut files = Vec::new();
    while let Some(capture) = found.next().await? {
        files.push(capture.file.unwrap());
    }
    Ok(files)
}

async fn until_found(cluster: &Cluster, url: &str, expected: &[&FileName]) {
    let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
    eventually(
        &format!("captures of {url}"),
        LONG,
        async || match captures(cluster, url).await {
            Ok(found) if found == expected => Ok(()),
            other => Err(other),
        },
    )
    .await;
}

async fn until_status(
    cluster: &Cluster,
    what: &str,
    fits: impl Fn(&IndexStatus) -> bool,
) -> IndexStatus {
    let operator = index(cluster, "operator/otto");
    eventually(what, LONG, async || {
        match operator.index_status(None).await {
            Ok(status) if fits(&status) => Ok(status),
            other => Err(other),
        }
    })
    .await
}

async fn export(cluster: &Cluster) -> Vec<u8> {
    let operator = index(cluster, "operator/otto");
    let mut exported = operator
        .export_lines(&ExportFormat::default(), None)
        .await
        .unwrap();
    let mut bytes = Vec::new();
    while let Some(lines) = exported.next().await.unwrap() {
        bytes.extend_from_slice(&lines);
    }
    let lines = bytes.split(|byte| *byte == b'\n').count() - 1;
    assert_eq!(exported.line_count(), Some(lines as u64));
    bytes
}

/// Fails if a stored file is not found, a withdrawn one is, or the index does not come back as it was when its database
/// is gone, or its captures were deleted.
#[test]
fn index_follows_the_archive() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let first = name("a.warc.gz");
        let bytes = pages(1, 20);
        store(cluster, &first, &bytes).await.unwrap();
        start_index(cluster).await;
        let url = "http://site-0.example/1/0";
        until_found(cluster, url, &[&first]).await;
        // Live, and beside a file that is no archive file.
        let second = name("b.warc.gz");
        let notes = name("notes.txt");
        store(cluster, &second, &pages(2, 5)).await.unwrap();
        store(cluster, &notes, b"no archive file").await.unwrap();
        until_found(cluster, "http://site-1.example/2/1", &[&second]).await;
        let whole = until_status(cluster, "all is indexed", |status| {
            status.behind == 0 && status.indexed == 3
        });
        let whole = whole.await;
        assert_eq!((whole.captures, whole.parked_files), (25, 0), "{whole:?}");

        for replica in ["one", "two"] {
            remove(cluster, &first, replica, &bytes).await;
        }
        until_found(cluster, url, &[]).await;
        restore(cluster, "one").await;
        until_found(cluster, url, &[&first]).await;

        let before = export(cluster).await;
        assert_eq!(before.split(|byte| *byte == b'\n').count(), 26);
        let set = SetName::new("old").unwrap();
        let old = "org,old)/ 2001 {\"url\": \"x\"}\n";
        let line = "org,old)/ 20010101000000 {\"url\": \"http://old.org/\", \"filename\": \"o.arc\", \"offset\": \"7\"}\n";
        let data = [bytes::Bytes::from_static(old.as_bytes()), line.into()].map(Ok);
        let inputs = tokio_stream::iter([("old.cdxj".to_owned(), tokio_stream::iter(data))]);
        let operator = index(cluster, "operator/otto");
        let imported = operator.import_lines(&set, inputs).await.unwrap();
        assert_eq!(
            (imported.captures, imported.bad_lines),
            (1, 1),
            "{imported:?}"
        );
        assert_eq!(
            (imported.bad[0].number, imported.bad[0].input.as_str()),
            (1, "old.cdxj")
        );
        assert_eq!(
            captures(cluster, "http://old.org/").await.unwrap(),
            ["o.arc"]
        );

        operator.rebuild_index().await.unwrap();
        let again = until_status(cluster, "all is indexed again", |status| {
            status.behind == 0 && status.indexed == 3
        });
        assert_eq!(again.await.captures, 26, "the set stays");

        cluster.stop(INDEX).await;
        std::fs::remove_dir_all(cluster.path("captures")).unwrap();
        start_index(cluster).await;
        until_status(cluster, "all is indexed anew", |status| {
            status.behind == 0 && status.indexed == 3
        })
        .await;
        assert!(export(cluster).await == before, "not the same bytes");
    });
}

/// Fails if what happens while the index is away, or while it is cut off in the middle, is lost or shown twice.
#[test]
fn days_offline_are_caught_up() {
    on_a_cluster(async |cluster: &mut Cluster| {
        start_index(cluster).await;
        let mut files = Vec::new();
        for number in 0..12_u64 {
            let file = name(&format!("f-{number:02}.warc.gz"));
            store(cluster, &file, &pages(number, 30)).await.unwrap();
            files.push(file);
            if number % 3 == 1 {
                // In the middle of whatever it does.
                cluster.stop(INDEX).await;
            }
            if number % 3 == 2 {
                start_index(cluster).await;
            }
        }
        let whole = until_status(cluster, "all is indexed", |status| {
            status.behind == 0 && status.indexed == 12
        });
        assert_eq!(whole.await.captures, 360);
        let lines = export(cluster).await;
        assert_eq!(lines.split(|byte| *byte == b'\n').count(), 361);
        for (file, number) in files.iter().zip(0_u64..) {
            let url = format!("http://site-0.example/{number}/0");
            until_found(cluster, &url, &[file]).await;
        }
        let waited = Duration::from_secs(2);
        cluster.advance(waited);
        let compared = until_status(cluster, "a file is compared", |status| {
            status.comparison.is_some()
        });
        let compared = compared.await;
        assert_eq!(compared.differed, 0, "{compared:?}");
    });
}

/// Fails if a reader may do what operators do, or a faulty request is not answered in words.
#[test]
fn index_refuses_strangers_and_nonsense() {
    on_a_cluster(async |cluster: &mut Cluster| {
        start_index(cluster).await;
        let reader = index(cluster, "reader/anna");
        for refused in [
            reader.index_status(None).await.map(drop),
            reader.retry_files(&[]).await.map(drop),
            reader.rebuild_index().await.map(drop),
            reader
                .export_lines(&ExportFormat::default(), None)
                .await
                .map(drop),
        ] {
            assert_eq!(
                refused.unwrap_err().kind,
                archive_rpc::CallErrorKind::Refused
            );
        }
        let operator = index(cluster, "operator/otto");
        let nothing = SetName::new("nothing").unwrap();
        let format = ExportFormat::default();
        let exported = operator.export_lines(&format, Some(&nothing)).await;
        let set = match exported {
            Ok(mut exported) => exported.next().await.map(drop),
            Err(error) => Err(error),
        };
        let set = set.unwrap_err();
        assert_eq!(set.kind, archive_rpc::CallErrorKind::NotFound, "{set}");
        let parked = operator.retry_files(&[name("a.warc")]).await.unwrap_err();
        assert_eq!(
            parked.kind,
            archive_rpc::CallErrorKind::NotFound,
            "{parked}"
        );
        assert_eq!(operator.retry_files(&[]).await.unwrap(), 0);
    });
}
