//! Documents and their links.

mod charsets;
mod feeds;
mod files;
mod hostile;
mod pages;
mod scripts;
mod styles;

use super::*;

/// Returns the links of a document of a media type at `http://a.dk/d/p.html`, each as its letter and its URL without
/// `http://a.dk`.
fn links_of(media: &str, body: &[u8]) -> Vec<String> {
    extraction_of(media, body).links.iter().map(shown).collect()
}

fn shown(link: &Link) -> String {
    let url = link.url.as_str();
    let path = url.strip_prefix("http://a.dk").unwrap_or(url);
    format!("{} {path}", link.hop.letter())
}

fn head_of(media: &str) -> Head {
    let text = format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\n");
    Head::read_head(&mut text.as_bytes(), 1 << 16).unwrap()
}

fn extraction_of(media: &str, body: &[u8]) -> Extraction {
    let url = Url::parse("http://a.dk/d/p.html").unwrap();
    let head = head_of(media);
    let document = FetchedDocument {
        head: Some(&head),
        ..FetchedDocument::new(&url)
    };
    extract_links(&document, body, &ExtractionLimits::default())
}

fn check(media: &str, body: &str, expected: &[&str]) {
    assert_eq!(links_of(media, body.as_bytes()), expected, "{body}");
}
