//! The examples, built with the tools that researchers use, over a small archive.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use archive_batch::{BatchJobError, StopControl};
use archive_component::{Component, Components};
use archive_formats::warc::WarcType;

use crate::drive::{exists, folder, limits, show, warc};

/// The exit code of the scripts when their tool is not installed.
const NOT_INSTALLED: i32 = 3;

fn add(hasher: &mut blake3::Hasher, path: &Path) {
    if path.is_dir() {
        let mut inside: Vec<_> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        inside.sort();
        for path in &inside {
            add(hasher, path);
        }
    } else {
        hasher.update(&std::fs::read(path).unwrap());
    }
}

/// Returns the path of the example component; `None` if its tool is not installed. Builds it only if its sources have
/// changed.
fn built(language: &str) -> Option<PathBuf> {
    let example = folder().join("examples").join(language);
    let mut hasher = blake3::Hasher::new();
    add(&mut hasher, &folder().join("wit"));
    add(&mut hasher, &example);
    let name = format!("{language}-{}.wasm", hasher.finalize().to_hex());
    let wasm = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if exists(&wasm) {
        return Some(wasm);
    }
    let began = Instant::now();
    let beside = wasm.with_extension(format!("{}.part", std::process::id()));
    let build = Command::new(example.join("build"))
        .arg("--no-install")
        .arg(&beside)
        .output()
        .unwrap();
    if build.status.code() == Some(NOT_INSTALLED) {
        tools_testing::skipped(&format!(
            "the example job in {language}: what builds it is not installed (see its README)"
        ));
        return None;
    }
    assert!(build.status.success(), "{language}: {build:?}");
    #[expect(clippy::disallowed_methods, reason = "another test may build the same")]
    std::fs::rename(&beside, &wasm).unwrap();
    eprintln!("{language}: built in {:?}", began.elapsed());
    Some(wasm)
}

fn component(language: &str) -> Option<Arc<Component>> {
    let bytes = std::fs::read(built(language)?).unwrap();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("components");
    let components = Components::new(Some(&cache)).unwrap();
    let began = Instant::now();
    let component = components
        .compile_component(&bytes, &StopControl::default())
        .unwrap();
    eprintln!(
        "{language}: {} bytes compiled in {:?}",
        bytes.len(),
        began.elapsed()
    );
    Some(component)
}

/// Pages as they are harvested: plain, chunked, compressed, without a title, not there, and an image.
fn pages() -> Vec<u8> {
    let page = |head: &str, body: &[u8]| [head.as_bytes(), b"\r\n\r\n", body].concat();
    let first = page(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8",
        "<html><head><title>\n R&oslash;dgr&oslash;d   med fl&#248;de</title></head>".as_bytes(),
    );
    let chunked = page(
        "HTTP/1.1 200 OK\r\ncontent-type: TEXT/HTML\r\nTransfer-Encoding: chunked",
        b"c\r\n<title>Chunk\r\n13\r\ned</title><p>text</p\r\n0\r\n\r\n",
    );
    let untitled = page("HTTP/1.1 200 OK\r\nContent-Type: text/html", b"<p>no title");
    let absent = page(
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/html",
        b"<title>Not found</title>",
    );
    let image = page("HTTP/1.1 200 OK\r\nContent-Type: image/png", b"\x89PNG");
    let broken = page(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip",
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xff\xff\xff\xff\xff\xff\xff\xff",
    );
    let http = "application/http; msgtype=response";
    warc(&[
        (
            WarcType::Request,
            "http://a.example/",
            "application/http; msgtype=request",
            b"GET / HTTP/1.1\r\n\r\n",
        ),
        (WarcType::Response, "http://a.example/", http, &first),
        (
            WarcType::Response,
            "http://b.example/chunked",
            http,
            &chunked,
        ),
        (
            WarcType::Response,
            "http://b.example/untitled",
            http,
            &untitled,
        ),
        (WarcType::Response, "http://a.example/absent", http, &absent),
        (WarcType::Response, "http://a.example/image", http, &image),
        (WarcType::Response, "http://b.example/broken", http, &broken),
    ])
}

/// Fails if a job in Python is not given the decoded pages and its arguments, or its errors do not arrive as failures
/// of the record.
#[test]
fn the_python_job_lists_titles() {
    let Some(titles) = component("python") else {
        return;
    };
    assert!(
        titles
            .about()
            .text
            .starts_with("Lists the titles of HTML pages.")
    );
    assert!(!titles.about().reduces);
    let came = show(&titles, &[], limits(), "pages.warc.gz", &pages());
    let errors = came.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("gzip stream is damaged"), "{errors:?}");
    let expected = "http://a.example/\tRødgrød med fløde\nhttp://b.example/chunked\tChunked\n";
    assert_eq!(came.text(), expected);

    let began = Instant::now();
    let came = show(
        &titles,
        &[("host", "b.example")],
        limits(),
        "pages.warc.gz",
        &pages(),
    );
    eprintln!(
        "python: a file of {} bytes in {:?}",
        pages().len(),
        began.elapsed()
    );
    assert_eq!(came.text(), "http://b.example/chunked\tChunked\n");

    let came = show(
        &titles,
        &[("hosts", "b.example")],
        limits(),
        "pages.warc.gz",
        &pages(),
    );
    assert_eq!(
        came.errors(),
        ["there is no argument 'hosts'; the only one is `host`"]
    );
    assert!(matches!(came.errors[0], BatchJobError::Failed(_)));
}

/// Fails if a job in JavaScript does not see each response once, cannot refuse an argument, or its own reduce step
/// loses lines of a long input.
#[test]
fn the_javascript_job_counts_media_types() {
    let Some(types) = component("javascript") else {
        return;
    };
    assert!(types.about().reduces);
    let came = show(&types, &[], limits(), "pages.warc.gz", &pages());
    assert_eq!(came.errors(), [""; 0]);
    assert_eq!(came.text(), "image/png\t1\ntext/html\t5\n");

    let began = Instant::now();
    let came = show(&types, &[("a", "b")], limits(), "pages.warc.gz", &pages());
    eprintln!("javascript: one call in {:?}", began.elapsed());
    assert_eq!(came.errors(), ["there is no argument a"]);
    assert!(matches!(came.errors[0], BatchJobError::Failed(_)));

    let input = "image/png\t1\ntext/html\t5\n-\t2\ntext/html\t37\n".repeat(5000);
    let mut output = Vec::new();
    let control = StopControl::default();
    let reducer = types.make_reducer(&[], limits()).unwrap();
    reducer
        .reduce_outputs(&mut input.as_bytes(), &mut output, &control)
        .unwrap();
    let output = String::from_utf8(output).unwrap();
    assert_eq!(output, "-\t10000\nimage/png\t5000\ntext/html\t210000\n");
}

/// Fails if a job in Rust does not see each response once, with its URL.
#[test]
fn the_rust_job_counts_hosts() {
    let Some(hosts) = component("rust") else {
        return;
    };
    let came = show(&hosts, &[], limits(), "pages.warc.gz", &pages());
    assert_eq!(came.errors(), [""; 0]);
    assert_eq!(came.text(), "a.example\t3\nb.example\t3\n");
}
