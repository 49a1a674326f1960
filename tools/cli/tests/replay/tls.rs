//! The listeners for browsers with certificates for the names of their hosts. curl and the browser trust the authority
//! of the test and no other.

use crate::archive::wait;
use crate::support::browser::{Browser, BrowserOptions, Programs};
use crate::support::chain::{Chain, authority, endpoint, text};
use crate::support::curl::{Answer, curl};
use crate::support::links::links_of;
use crate::support::made::{Response, warc};
use crate::support::outside::Outside;
use crate::support::site_authority::SiteAuthority;

const DATE: &str = "2020-02-01T00:00:00Z";
const TIME: &str = "20200201000000";
const URL: &str = "http://secure.example/";

/// The hosts under which visitors reach the listeners.
const REPLAY_HOST: &str = "replay.example";
const PAGE_HOST: &str = "archive.example";

/// A page whose references are all plain HTTP, as it was captured: browsers stop such requests of pages that came by
/// TLS.
const PAGE: &str = r#"<!DOCTYPE html>
<html lang="en"><head><title>Secure</title>
<link rel="stylesheet" href="http://secure.example/plain.css">
</head><body>
<p id="made">no script has run</p>
<img src="http://secure.example/plain.svg" alt="plain">
<script src="http://secure.example/made.js"></script>
</body></html>
"#;

const SCRIPT: &str = "fetch('http://secure.example/text').then((answer) => answer.text())
    .then((text) => { document.getElementById('made').textContent = text; });";

const IMAGE: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='30'><rect width='40' height='30'/></svg>";

/// The captures: the last part of the URL, the media type, and the body.
const CAPTURES: [(&str, &str, &str); 5] = [
    ("", "text/html; charset=utf-8", PAGE),
    ("plain.css", "text/css", "#made { color: rgb(1, 2, 3); }"),
    ("plain.svg", "image/svg+xml", IMAGE),
    ("made.js", "text/javascript", SCRIPT),
    ("text", "text/plain", "made over TLS"),
];

/// An archive whose replay and page listeners have certificates.
struct SecureChain {
    chain: Chain,
    /// The origin of the pages.
    web: String,
    site_authority: SiteAuthority,
    /// The hashes of the public keys of both hosts.
    key_hashes: [String; 2],
}

impl SecureChain {
    /// Starts an archive with the captures, or says what the test lacks.
    fn start() -> Option<Self> {
        let site_authority = SiteAuthority::create()?;
        let mut chain = Chain::start(&[]);
        let responses = CAPTURES.map(|(name, media, body)| {
            let fields = format!("Content-Type: {media}\r\n");
            (format!("{URL}{name}"), fields, body)
        });
        let responses: Vec<Response<'_>> = responses
            .iter()
            .map(|(url, fields, body)| Response {
                url,
                date: DATE,
                fields,
                body: body.as_bytes(),
            })
            .collect();
        chain.store_bytes("secure.warc.gz", &warc(&responses));
        let plain_web = endpoint(&chain.archive, "web");
        chain.archive.down();

        let path = chain.viewer_settings();
        let mut settings = std::fs::read_to_string(&path).unwrap();
        let listen = format!("listen = \"{}\"\n", authority(&chain.replay));
        let url = format!("url = \"{plain_web}\"\n");
        let key_hashes = [(REPLAY_HOST, &listen), (PAGE_HOST, &url)].map(|(host, line)| {
            let issued = site_authority.issue(host);
            let (_, port) = line
                .trim_end()
                .trim_end_matches('"')
                .rsplit_once(':')
                .unwrap();
            let kept = if host == REPLAY_HOST {
                line.as_str()
            } else {
                ""
            };
            let secure = format!(
                "{kept}url = \"https://{host}:{port}\"\ncertificate = \"{}\"\nkey = \"{}\"\n",
                text(&issued.certificate),
                text(&issued.key)
            );
            assert_eq!(settings.matches(line.as_str()).count(), 1, "{settings}");
            settings = settings.replacen(line.as_str(), &secure, 1);
            issued.key_hash
        });
        std::fs::write(&path, settings).unwrap();
        // The client file has other addresses now, and is written anew.
        std::fs::remove_file(chain.archive.data().join("client.toml")).unwrap();
        chain.archive.up(&[]);
        chain.replay = endpoint(&chain.archive, "replay");
        let web = endpoint(&chain.archive, "web");
        let secure = Self {
            chain,
            web,
            site_authority,
            key_hashes,
        };
        wait("the replay listener answers", || {
            let answer = secure.ask(&format!("{}/", secure.chain.replay), &[]);
            if answer.status == 200 {
                Ok(())
            } else {
                Err(answer.status)
            }
        });
        Some(secure)
    }

    /// Asks for a URL, and trusts the authority of the test.
    fn ask(&self, url: &str, words: &[&str]) -> Answer {
        let trusted = self.site_authority.certificate();
        self.ask_trusting(url, &[&["--cacert", text(&trusted)], words].concat())
    }

    /// Asks for a URL, and trusts those whom the words name. Both names are on both ports of this machine.
    fn ask_trusting(&self, url: &str, words: &[&str]) -> Answer {
        let mut places = Vec::new();
        for host in [REPLAY_HOST, PAGE_HOST] {
            for origin in [&self.chain.replay, &self.web] {
                let (_, port) = origin.rsplit_once(':').unwrap();
                places.push(format!("{host}:{port}:127.0.0.1"));
            }
        }
        let mut all: Vec<&str> = words.to_vec();
        for place in &places {
            all.extend(["--resolve", place]);
        }
        curl(url, &all)
    }
}

/// Fails if a listener with a certificate hands out other bytes or plain links, or if it shows a certificate that is
/// not its own.
#[test]
fn captures_are_served_over_tls() {
    let Some(secure) = SecureChain::start() else {
        return;
    };
    let replay = secure.chain.replay.as_str();
    let web = secure.web.as_str();
    assert!(replay.starts_with(&format!("https://{REPLAY_HOST}:")));
    assert!(web.starts_with(&format!("https://{PAGE_HOST}:")));
    for (name, media, body) in CAPTURES {
        let raw = secure.ask(&format!("{replay}/all/{TIME}id_/{URL}{name}"), &[]);
        let raw = raw.expect(200);
        assert_eq!(raw.text(), body, "{name}");
        assert_eq!(raw.field("Content-Type"), Some(media), "{name}");
    }
    let memento = secure.ask(&format!("{replay}/all/{TIME}/{URL}"), &[]);
    for link in links_of(&memento.expect(200)) {
        let is_original = link.has("original") && link.address == URL;
        let is_secure = link.address.starts_with(&format!("{replay}/"));
        assert!(is_original || is_secure, "{link:?}");
    }
    secure.ask(&format!("{web}/"), &[]).expect(200);
    let framed = secure.ask(&format!("{web}/replay/all/{TIME}/{URL}"), &[]);
    let framed = framed.expect(200);
    let address = format!("src=\"{replay}/all/{TIME}mp_/{URL}\"");
    assert!(framed.text().contains(&address), "{}", framed.text());
    let policy = framed.field("Content-Security-Policy").unwrap_or_default();
    let directive = format!("frame-src {replay}");
    assert!(policy.contains(&directive), "{policy}");

    // Each listener shows the certificate of its own host, which only the authority of the test has signed.
    let other = |origin: &str, host: &str| {
        let (_, port) = origin.rsplit_once(':').unwrap();
        format!("https://{host}:{port}/")
    };
    for url in [other(replay, PAGE_HOST), other(web, REPLAY_HOST)] {
        assert_eq!(secure.ask(&url, &[]).status, 0, "{url}");
        let insecure = secure.ask_trusting(&url, &["--insecure"]);
        assert_ne!(insecure.status, 0, "{url} answers nobody");
    }
    for origin in [replay, web] {
        let answer = secure.ask_trusting(&format!("{origin}/"), &[]);
        assert_eq!(answer.status, 0, "{origin} is trusted by everybody");
    }
    secure.chain.archive.stop();
}

/// Fails if a browser does not show the whole page over TLS, for example because references by plain HTTP are stopped.
#[test]
fn page_is_shown_over_tls() {
    let Some(programs) = Programs::find() else {
        return;
    };
    let Some(secure) = SecureChain::start() else {
        return;
    };
    let replay = secure.chain.replay.as_str();
    let web = secure.web.as_str();
    let outside = Outside::start();
    let options = BrowserOptions {
        hosts: &[authority(web), authority(replay)],
        local_names: &[REPLAY_HOST, PAGE_HOST],
        trusted_keys: &secure.key_hashes.each_ref().map(String::as_str),
        ..BrowserOptions::default()
    };
    let browser = Browser::start(&programs, &outside, &options);
    let address = format!("{web}/replay/all/{TIME}/{URL}");
    browser.open(&address);
    browser.enter_frame();
    let made = "const made = document.getElementById('made');
        return made && made.textContent === 'made over TLS'";
    browser.wait_for("the script", made);
    let image = "return document.images.length === 1 && document.images[0].complete";
    browser.wait_for("the image", image);
    let facts = "return [isSecureContext, location.origin, document.images[0].naturalWidth,
        getComputedStyle(document.getElementById('made')).color]";
    let expected = serde_json::json!([true, replay, 40, "rgb(1, 2, 3)"]);
    assert_eq!(browser.evaluate(facts), expected);
    browser.leave_frame();
    assert_eq!(browser.address(), address);
    browser.picture("tls-framed");
    outside.check_quiet();
    secure.chain.archive.stop();
}

/// Fails if a visitor who speaks plain HTTP to a listener with a certificate is not sent to https.
#[test]
fn plain_http_is_refused_in_words() {
    let Some(secure) = SecureChain::start() else {
        return;
    };
    for origin in [&secure.chain.replay, &secure.web] {
        let plain = origin.replacen("https://", "http://", 1);
        for path in ["/", &format!("/all/{TIME}id_/{URL}")] {
            let answer = secure.ask(&format!("{plain}{path}"), &[]);
            let said = answer.text();
            let is_refused = (400..500).contains(&answer.status);
            assert!(is_refused, "{plain}{path}: {} {said}", answer.status);
            assert!(said.contains("https"), "{plain}{path}: {said}");
            assert!(!said.contains("no script has run"), "{plain}{path}: {said}");
        }
    }
    secure.chain.archive.stop();
}
