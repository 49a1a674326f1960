//! A certificate authority that openssl makes for a test. It issues certificates for hosts, as public authorities do.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::tools::program;

/// The settings of openssl. The variable has the names of a host.
const SETTINGS: &str = "\
[req]
distinguished_name = subject
prompt = no
x509_extensions = authority
[subject]
commonName = Authority of the tests
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[site]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = ${ENV::SITE_NAMES}
";

/// A fresh key of a kind that is made at once, in a file that is not encrypted.
const FRESH_KEY: [&str; 5] = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
];

/// An authority, with its certificates in a folder of its own.
pub struct SiteAuthority {
    openssl: PathBuf,
    directory: tempfile::TempDir,
}

/// A certificate for one host.
pub struct SiteCertificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The SHA-256 of its public key in Base64, by which a browser is told to trust it.
    pub key_hash: String,
}

impl SiteAuthority {
    /// Makes an authority, or says what the test lacks.
    pub fn create() -> Option<Self> {
        let Some(openssl) = program("openssl") else {
            tools_testing::skipped("openssl is not installed (openssl)");
            return None;
        };
        let authority = Self {
            openssl,
            directory: tempfile::tempdir().expect("a directory"),
        };
        std::fs::write(authority.path("settings"), SETTINGS).expect("write");
        let words = ["req", "-x509", "-config", "settings", "-days", "2"];
        let files = ["-keyout", "authority.key", "-out", "authority.pem"];
        let words = [&words[..], &FRESH_KEY, &files].concat();
        authority.run("nobody.invalid", &words);
        Some(authority)
    }

    /// Returns the path of the authority's own certificate, which clients trust.
    pub fn certificate(&self) -> PathBuf {
        self.path("authority.pem")
    }

    /// Issues a certificate for a host.
    pub fn issue(&self, host: &str) -> SiteCertificate {
        let [key, request, certificate] =
            ["key", "csr", "pem"].map(|kind| format!("{host}.{kind}"));
        let public = "public.pem";
        let der = "public.der";
        let hash = "public.hash";
        let subject = format!("/CN={host}");
        let words = ["req", "-new", "-config", "settings", "-subj", &subject];
        let files = ["-keyout", &key, "-out", &request];
        self.run(host, &[&words[..], &FRESH_KEY, &files].concat());
        let words = ["x509", "-req", "-in", &request, "-days", "2"];
        let by = ["-CA", "authority.pem", "-CAkey", "authority.key"];
        let form = ["-CAcreateserial", "-extfile", "settings"];
        let files = ["-extensions", "site", "-out", &certificate];
        let words = [&words[..], &by, &form, &files].concat();
        self.run(host, &words);
        let own = self.run(host, &["x509", "-in", &certificate, "-noout", "-pubkey"]);
        std::fs::write(self.path(public), own).expect("write");
        let words = ["pkey", "-pubin", "-in", public];
        let words = [&words[..], &["-outform", "DER", "-out", der]].concat();
        self.run(host, &words);
        let words = ["dgst", "-sha256", "-binary", "-out", hash, der];
        self.run(host, &words);
        let key_hash = self.run(host, &["base64", "-in", hash]);
        SiteCertificate {
            certificate: self.path(&certificate),
            key: self.path(&key),
            key_hash: key_hash.trim().to_owned(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs openssl in the folder, for a host, and returns what it prints.
    #[track_caller]
    fn run(&self, host: &str, words: &[&str]) -> String {
        let output = Command::new(&self.openssl)
            .args(words)
            .current_dir(self.directory.path())
            .env("SITE_NAMES", format!("DNS:{host}"))
            .stdin(Stdio::null())
            .output()
            .expect("openssl");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {words:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }
}
