//! Sitemaps, feeds and other XML.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn xml(body: &str, expected: &[&str]) {
    check("application/xml", body, expected);
}

/// Fails if pages and sitemaps of a sitemap are mixed up, or its images are lost.
#[test]
fn sitemaps_lead_to_pages_and_sitemaps() {
    xml(
        "<?xml version='1.0'?><urlset xmlns:image='x'><url><loc> http://a.dk/1?a=b&amp;c=d </loc>\
         <image:image><image:loc>http://a.dk/i.jpg</image:loc></image:image>\
         <xhtml:link rel='alternate' hreflang='da' href='http://a.dk/da'/>\
         <video:video><video:thumbnail_loc>http://a.dk/t.jpg</video:thumbnail_loc></video:video></url>\
         <url><loc><![CDATA[http://a.dk/2]]></loc></url></urlset>",
        &["L /1?a=b&c=d", "E /i.jpg", "L /da", "E /t.jpg", "L /2"],
    );
    xml(
        "<sitemapindex><sitemap><loc>http://a.dk/s.xml</loc></sitemap><url><loc>http://a.dk/1</loc></url></sitemapindex>",
        &["M /s.xml", "L /1"],
    );
}

/// Fails if the links of a feed are lost, or its identifiers are links.
#[test]
fn feeds_give_their_links() {
    xml(
        "<rss><channel><link>http://a.dk/</link><atom:link rel='self' href='/feed'/><image><url>/logo.png</url></image>\
         <item><link>/1</link><guid isPermaLink='false'>http://a.dk/id/1</guid><comments>/1#c</comments>\
         <enclosure url='/1.mp3' type='audio/mpeg'/><media:content url='/1.jpg'/>\
         <description>&lt;img src=&quot;/in.png&quot;&gt; text</description>\
         <content:encoded><![CDATA[<a href=\"/more\">]]></content:encoded></item>\
         <item><guid>http://a.dk/2</guid></item></channel></rss>",
        &[
            "L /",
            "L /feed",
            "E /logo.png",
            "L /1",
            "E /1.mp3",
            "E /1.jpg",
            "E /in.png",
            "L /more",
            "L /2",
        ],
    );
    xml(
        "<feed><link href='/'/><link rel='enclosure' href='/e.mp3'/><icon>/i.png</icon><id>tag:x</id>\
         <entry><link rel='alternate' href='/1'/><content type='html'>&lt;a href='/2'></content></entry></feed>",
        &["L /", "E /e.mp3", "E /i.png", "L /1", "L /2"],
    );
    xml(
        "<opml><outline xmlUrl='/f' htmlUrl='/h'/></opml>",
        &["L /f", "L /h"],
    );
}

/// Fails if other XML is read as nothing, or names of vocabularies become links.
#[test]
fn other_xml_gives_plain_urls() {
    xml(
        "<?xml-stylesheet type='text/xsl' href='s.xsl'?><r xmlns='http://b.dk/ns'><a>http://a.dk/x</a><b>word</b></r>",
        &["E /d/s.xsl", "X /x"],
    );
    check(
        "image/svg+xml",
        "<svg xmlns:xlink='x'><style>a{b:url(b.png)}</style><image xlink:href='i.png'/><a href='/l'/></svg>",
        &["E /d/b.png", "E /d/i.png", "L /l"],
    );
}

/// Fails if a document that is not well-formed loses the links before the fault, or hides it.
#[test]
fn broken_xml_keeps_links_before_fault() {
    let extraction = extraction_of(
        "text/xml",
        b"<urlset><loc>http://a.dk/1</loc></x>& <loc>http://a.dk/2</loc><loc>http://a.dk/cut",
    );
    let links: Vec<String> = extraction.links.iter().map(shown).collect();
    assert_eq!(links, ["L /1", "L /2"]);
    let extraction = extraction_of("text/xml", b"<loc>http://a.dk/1</loc><!-- cut");
    assert_eq!(extraction.links.len(), 1);
    assert!(
        extraction
            .annotations
            .contains(&"extractTrunc:syntax".to_owned())
    );
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// Fails if a sitemap in gzip or plain text is not read, or any text is taken for a sitemap.
#[test]
fn manifests_are_read_packed_and_plain() {
    let sitemap = b"<urlset><url><loc>http://a.dk/1</loc></url></urlset>";
    let list = b"\xef\xbb\xbfhttp://a.dk/1\r\nno url\r\n/relative\r\n";
    let head = head_of("application/octet-stream");
    for (name, body, is_manifest, expected) in [
        ("s", gzip(sitemap), true, 1),
        ("s", gzip(list), true, 1),
        ("s", list.to_vec(), true, 1),
        ("s", sitemap.to_vec(), true, 1),
        ("s.xml.gz", gzip(sitemap), false, 1),
        ("s", gzip(sitemap), false, 0),
        ("s", list.to_vec(), false, 0),
    ] {
        let url = Url::parse(&format!("http://a.dk/{name}")).unwrap();
        let document = FetchedDocument {
            head: Some(&head),
            is_manifest,
            ..FetchedDocument::new(&url)
        };
        let extraction = extract_links(&document, body.as_slice(), &ExtractionLimits::default());
        assert_eq!(
            extraction.links.len(),
            expected,
            "{name} {is_manifest} {body:?}"
        );
    }
}

/// Fails if a sitemap is cut at the limit of pages.
#[test]
fn sitemaps_have_limit_of_their_own() {
    let url = Url::parse("http://a.dk/s").unwrap();
    let limits = ExtractionLimits {
        max_links: 1,
        max_manifest_links: 3,
        ..ExtractionLimits::default()
    };
    let list = b"http://a.dk/1\nhttp://a.dk/2\nhttp://a.dk/3\nhttp://a.dk/4";
    let document = FetchedDocument {
        is_manifest: true,
        ..FetchedDocument::new(&url)
    };
    let extraction = extract_links(&document, &list[..], &limits);
    assert_eq!(extraction.links.len(), 3);
    assert_eq!(extraction.annotations, ["dol:1"]);
}

/// Fails if a packed sitemap inflates without a limit, or is lost where its gzip is cut.
#[test]
fn packed_sitemap_inflates_up_to_limit() {
    let url = Url::parse("http://a.dk/s.xml.gz").unwrap();
    let mut sitemap = b"<urlset><loc>http://a.dk/1</loc>".to_vec();
    sitemap.resize(1 << 20, b' ');
    let limits = ExtractionLimits {
        bytes: 64 << 10,
        ..ExtractionLimits::default()
    };
    let packed = gzip(&sitemap);
    let extraction = extract_links(&FetchedDocument::new(&url), packed.as_slice(), &limits);
    assert_eq!(
        (extraction.links.len(), extraction.annotations),
        (1, vec!["extractTrunc:length".to_owned()])
    );
    let cut = &packed[..packed.len() / 2];
    let extraction = extract_links(
        &FetchedDocument::new(&url),
        cut,
        &ExtractionLimits::default(),
    );
    assert_eq!(
        (extraction.links.len(), extraction.annotations),
        (1, vec!["extractTrunc:body".to_owned()])
    );
}
