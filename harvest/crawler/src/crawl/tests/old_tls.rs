//! Hosts that speak TLS of old: the pages of their time are harvested, and what was agreed on is noted.

use openssl::asn1::Asn1Time;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use openssl::ssl::{Ssl, SslContext, SslMethod, SslVersion};
use openssl::x509::{X509, X509Name};
use tokio_openssl::SslStream;

use super::*;

/// Serves a page by TLS of one version and one suite, with a certificate of 1,024 bits that has expired.
async fn serve_old(version: SslVersion, suite: &str) -> (Url, AskedPaths) {
    let key = PKey::from_rsa(Rsa::generate(1024).unwrap()).unwrap();
    let mut name = X509Name::builder().unwrap();
    name.append_entry_by_text("CN", "old.test").unwrap();
    let name = name.build();
    let mut certificate = X509::builder().unwrap();
    certificate.set_subject_name(&name).unwrap();
    certificate.set_issuer_name(&name).unwrap();
    certificate.set_pubkey(&key).unwrap();
    for (text, is_begin) in [("20050101000000Z", true), ("20060101000000Z", false)] {
        let time = Asn1Time::from_str(text).unwrap();
        if is_begin {
            certificate.set_not_before(&time).unwrap();
        } else {
            certificate.set_not_after(&time).unwrap();
        }
    }
    certificate.sign(&key, MessageDigest::sha1()).unwrap();
    let mut context = SslContext::builder(SslMethod::tls_server()).unwrap();
    context.set_security_level(0);
    context.set_min_proto_version(Some(version)).unwrap();
    context.set_max_proto_version(Some(version)).unwrap();
    context
        .set_cipher_list(&format!("{suite}:@SECLEVEL=0"))
        .unwrap();
    context.set_private_key(&key).unwrap();
    context.set_certificate(&certificate.build()).unwrap();
    let context = context.build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://{}/", listener.local_addr().unwrap());
    let asked = AskedPaths::default();
    let told = Arc::clone(&asked);
    tokio::task::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = SslStream::new(Ssl::new(&context).unwrap(), stream).unwrap();
            let told = Arc::clone(&told);
            tokio::task::spawn(async move {
                if std::pin::Pin::new(&mut stream).accept().await.is_err() {
                    return;
                }
                while let Some(head) = read_head(&mut stream).await {
                    told.lock().push(path_of(&head).to_owned());
                    let page = page("<a href=/a>a page of its time</a>");
                    if stream.write_all(page.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (Url::parse(&base).unwrap(), asked)
}

/// Fails if a host that speaks TLS of old is lost, its session is not noted, or it is asked although the order says no.
#[tokio::test]
async fn hosts_of_old_are_harvested() {
    for (version, suite, noted) in [
        (SslVersion::TLS1, "ALL", "tlsVersion: TLSv1_0"),
        (SslVersion::TLS1_1, "ALL", "tlsVersion: TLSv1_1"),
        (
            SslVersion::TLS1_2,
            "AES128-SHA",
            "tlsCipher: TLS_RSA_WITH_AES_128_CBC_SHA",
        ),
    ] {
        let (base, asked) = serve_old(version, suite).await;
        let directory = tempfile::tempdir().unwrap();
        let seeds = std::slice::from_ref(&base);
        let outcome = crawl(settings(directory.path(), seeds, "retry.max_tries = 1")).await;
        assert_eq!(outcome.progress.fetched, 2, "{noted}");
        assert_eq!(asked.lock().as_slice(), ["/robots.txt", "/", "/a"]);
        let line = log(directory.path()).pop().unwrap();
        assert!(
            line.annotations.iter().any(|note| note.starts_with("tls:")),
            "{line:?}"
        );
        let metadata = requests::blocks(directory.path(), WarcType::Metadata);
        let metadata: String = metadata.into_values().collect();
        assert!(metadata.contains(noted), "{metadata}");

        let refused = tempfile::tempdir().unwrap();
        let order = "retry.max_tries = 1\nhttp.tls = \"modern\"\nrobots.policy = \"ignore\"";
        crawl(settings(refused.path(), seeds, order)).await;
        let statuses: Vec<i32> = log(refused.path()).iter().map(|line| line.status).collect();
        assert_eq!(statuses, [-9, -9], "{noted}");
        assert_eq!(asked.lock().len(), 3, "{noted}");
    }
}
