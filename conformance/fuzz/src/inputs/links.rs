//! Documents of every kind, as a crawl reads them for their links.

use std::io::BufReader;

use archive_formats::http::Head;
use harvest_extraction::{Extraction, ExtractionLimits, FetchedDocument, extract_links};
use url::Url;

const LIMITS: ExtractionLimits = ExtractionLimits {
    obeys_nofollow: false,
    guesses_icon: true,
    max_links: 100,
    max_manifest_links: 100,
    bytes: 1 << 20,
    memory: 1 << 16,
};

/// Returns a head and a body for each kind of document.
pub(super) fn links_seeds() -> Vec<Vec<u8>> {
    [
        (
            "text/html",
            "<base href=/b/><img srcset='a.png 1x, b.png'><noscript><a href='?x&amp;y'></noscript>",
        ),
        (
            "text/html; charset=shift_jis",
            "<meta http-equiv=refresh content='1;url=/r'><script>a='\\/x/y'</script>",
        ),
        (
            "text/css",
            "@import 'a.css'; a{b:url(\\78 .png);c:image-set('d.png' 1x)} /* e */",
        ),
        (
            "text/javascript",
            "a=/['\"]/.test(b)?'/c/d':`/e/${f}`; // g\nh=\"i\\u002Fj.html\"",
        ),
        (
            "application/json",
            "{\"@id\":\"https:\\/\\/b.dk\\/x\",\"y\":[\"/z/\",1]}",
        ),
        (
            "text/xml",
            "<?xml-stylesheet href='s.xsl'?><rss><link>/1</link><description>&lt;a href=/2></description></rss>",
        ),
        (
            "application/xml",
            "<sitemapindex><sitemap><loc>http://b.dk/s</loc></sitemap></sitemapindex>",
        ),
        ("text/plain", "http://b.dk/1\r\nhttp://b.dk/2"),
        (
            "application/pdf",
            "%PDF-1.5 1 0 obj<</URI(http://b.dk/\\)\\057)>>endobj",
        ),
        ("text/html\r\nLink: </s.css>; rel=preload\r\nLocation: /l", ""),
    ]
    .map(|(media, body)| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\n{body}").into_bytes()
    })
    .into()
}

/// The links are absolute, within the limits, and the same however the bytes are cut.
pub(super) fn links(input: &[u8]) {
    let mut body = input;
    let Ok(head) = Head::read_head(&mut body, 1 << 12) else {
        return;
    };
    let url = Url::parse("http://a.dk/d/p?q").unwrap();
    let document = FetchedDocument {
        head: Some(&head),
        is_manifest: input.len().is_multiple_of(2),
        ..FetchedDocument::new(&url)
    };
    let whole = extract_links(&document, body, &LIMITS);
    check(&whole);
    let size = usize::from(input.last().copied().unwrap_or(0) % 7) + 1;
    let pieces = BufReader::with_capacity(size, body);
    assert_eq!(extract_links(&document, pieces, &LIMITS), whole, "{size}");
}

fn check(extraction: &Extraction) {
    assert!(extraction.links.len() <= LIMITS.max_links);
    for link in &extraction.links {
        assert!(matches!(link.url.scheme(), "http" | "https" | "ftp"));
        assert!(link.url.has_host() && link.url.fragment().is_none());
        assert_eq!(Url::parse(link.url.as_str()).as_ref(), Ok(&link.url));
    }
    for annotation in &extraction.annotations {
        assert!(!annotation.contains([',', ' ', '"', '\n']), "{annotation}");
    }
}
