//! The service worker: its own tests, run by node, and how it is served.

use std::path::Path;
use std::process::Command;

use super::test_archive::TestArchive;
use super::three_pages;

/// Fails if a test of the worker fails; they are in `worker/worker_test.js`.
#[test]
fn worker_passes_its_own_tests() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("worker/worker_test.js");
    match Command::new("node").arg("--test").arg(tests).output() {
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{told}");
            assert!(told.contains("pass 11"), "not all tests were run: {told}");
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            tools_testing::skipped("node is not on PATH (apt-get install nodejs)");
        }
        Err(error) => panic!("node cannot be run: {error}"),
    }
}

/// Fails if the worker could ask another host, or take over only a part of this one.
#[tokio::test]
async fn worker_asks_its_own_host() {
    let served = three_pages().await.serve().await;
    let fields = [
        ("Service-Worker", "script"),
        ("Sec-Fetch-Dest", "serviceworker"),
    ];
    let answer = served.ask("GET", "/static/worker.js", &fields).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("service-worker-allowed"), Some("/"));
    assert_eq!(
        answer.field("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    let policy = answer.field("content-security-policy").unwrap();
    assert!(policy.contains("connect-src 'self'") && policy.contains("default-src 'none'"));
    assert!(answer.text().contains("x-replay-worker"));
}

/// Fails if an archived script can become a service worker of the replay host.
#[tokio::test]
async fn archived_service_workers_are_refused() {
    let script =
        "HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\nService-Worker-Allowed: /\r\n\r\n";
    let warc = super::test_archive::Warc::new().response(
        "http://example.org/sw.js",
        super::FIRST,
        script,
        b"self.onfetch = () => {}",
    );
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    for modifier in ["id_", "js_", "sw_", "mp_", "", "oe_"] {
        let path = format!("/all/2020{modifier}/http://example.org/sw.js");
        for field in [
            ("Service-Worker", "script"),
            ("Sec-Fetch-Dest", "serviceworker"),
        ] {
            let answer = served.ask("GET", &path, &[field]).await;
            assert_eq!(answer.status, 403, "{path}");
            assert_eq!(answer.field("service-worker-allowed"), None);
        }
    }
    let of_look_up = served
        .ask("GET", "/all/cdx?url=x", &[("Service-Worker", "script")])
        .await;
    assert_eq!(of_look_up.status, 403);
}

/// Fails if the worker of the operator is not the one that is served, or a missing one is found out by a visitor.
#[tokio::test]
async fn worker_of_operator_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sw.js");
    let open = || crate::server::WorkerScript::open_script(Some(&file));
    assert!(
        open()
            .unwrap_err()
            .to_string()
            .contains("replay.service_worker")
    );
    let mut written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&file)
        .unwrap();
    assert!(open().unwrap_err().to_string().contains("is empty"));
    std::io::Write::write_all(&mut written, b"// the operator's own").unwrap();
    let setting = format!("replay.service_worker={}", file.display());
    let served = three_pages().await.set(setting).serve().await;
    let answer = served.get("/static/worker.js?replayPrefix=").await;
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "// the operator's own")
    );
    assert!(
        answer
            .list("content-security-policy")
            .contains("connect-src 'self'")
    );
    let loader = served.get("/all/2020mp_/http://example.org/page").await;
    assert!(loader.text().contains("addColl") && !loader.text().contains("<p>two"));
}
