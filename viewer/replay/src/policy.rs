//! Policies: what a browser may do with an answer of the replay host.
//!
//! Owns the texts of `Content-Security-Policy` and `Permissions-Policy`. They are one of three walls; the others are
//! the sandbox of the frame, which the page host sets up, and the worker, which asks its own host alone.
//!
//! A browser asks the policy of a page before it asks the service worker, so that a framed page has to be allowed the
//! URLs that it was made with: `http:` and `https:` reach the worker. Schemes and ways that pass by the worker are not
//! in the list: `ws:`, frames and objects of other hosts, threads from `blob:` (in them `WebTransport` cannot be taken
//! away), forms that leave.

/// The features of a browser that an archived page has no use for. Some of them fetch without asking the service
/// worker.
pub const PERMISSIONS: &str = "accelerometer=(), attribution-reporting=(), \
    browsing-topics=(), camera=(), compute-pressure=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), \
    identity-credentials-get=(), idle-detection=(), join-ad-interest-group=(), local-fonts=(), magnetometer=(), \
    microphone=(), midi=(), otp-credentials=(), payment=(), private-aggregation=(), publickey-credentials-create=(), \
    publickey-credentials-get=(), run-ad-auction=(), screen-wake-lock=(), serial=(), shared-storage=(), \
    storage-access=(), usb=(), window-management=(), xr-spatial-tracking=()";

/// The policy of raw bytes: wherever they are opened as a page of their own, nothing of them acts.
pub const RAW: &str =
    "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; media-src data:";

/// The policy of a thread that an archived page has begun: it reaches the worker by addresses of the replay host.
pub const THREAD: &str = "default-src 'self' data:; script-src 'self' 'unsafe-eval'; connect-src 'self' data:; \
    worker-src 'none'; webrtc 'block'";

/// The policy of our service worker: it asks its own host.
pub const SERVICE_WORKER: &str = "default-src 'none'; connect-src 'self'; script-src 'none'";

/// The hosts around the replay host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostFacts<'a> {
    /// The origin of the page host, which may frame what the replay host shows.
    pub page_host: Option<&'a str>,
    /// Whether the replay host is reached by TLS.
    pub is_encrypted: bool,
}

impl HostFacts<'_> {
    /// Returns the policy of an archived page with its scripts.
    pub fn framed_page(&self) -> String {
        let upgrade = if self.is_encrypted {
            // Plain URLs would be stopped as mixed content before the worker sees them.
            "; upgrade-insecure-requests"
        } else {
            ""
        };
        let inline = "'unsafe-inline' 'unsafe-eval'";
        format!(
            "default-src 'self' http: https: data: blob: {inline}; connect-src 'self' http: https: data: blob:; \
             frame-src 'self'; object-src 'self'; worker-src 'self'; manifest-src 'none'; form-action 'self'; \
             base-uri 'self'; webrtc 'block'; {}{upgrade}",
            self.ancestors()
        )
    }

    /// Returns the policy of a page without scripts. Its origin is kept, so that its images count as those of the same
    /// host.
    pub fn no_script(&self) -> String {
        format!(
            "sandbox allow-same-origin allow-forms allow-popups allow-top-navigation-by-user-activation; \
             default-src 'none'; script-src 'none'; img-src 'self' data:; media-src 'self' data:; \
             style-src 'self' 'unsafe-inline'; font-src 'self' data:; frame-src 'self'; form-action 'self'; \
             base-uri 'self'; {}",
            self.ancestors()
        )
    }

    /// Returns the policy of something in a frame that is no page: an image, a text.
    pub fn framed_resource(&self) -> String {
        format!(
            "sandbox allow-same-origin; default-src 'none'; img-src 'self' data:; media-src 'self' data:; \
             style-src 'unsafe-inline'; {}",
            self.ancestors()
        )
    }

    /// Returns the policy of a page of ours that has one script, with the Base64 of its SHA-256.
    pub fn loader_script(&self, script: &str) -> String {
        format!(
            "default-src 'none'; script-src 'sha256-{script}'; connect-src 'self'; worker-src 'self'; \
             style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; {}",
            self.ancestors()
        )
    }

    fn ancestors(&self) -> String {
        let page_host = self.page_host.unwrap_or_default();
        format!("frame-ancestors 'self' {page_host}")
            .trim_end()
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sources of a directive.
    fn sources<'a>(policy: &'a str, name: &str) -> Option<Vec<&'a str>> {
        policy.split(';').find_map(|directive| {
            let mut words = directive.split_ascii_whitespace();
            (words.next()? == name).then(|| words.collect())
        })
    }

    /// Fails if a framed page can reach a host by a way that passes by the worker.
    #[test]
    fn framed_page_reaches_the_worker_alone() {
        let around = HostFacts {
            page_host: Some("http://localhost:1"),
            is_encrypted: false,
        };
        let policy = around.framed_page();
        for name in [
            "frame-src",
            "object-src",
            "worker-src",
            "form-action",
            "base-uri",
        ] {
            assert_eq!(sources(&policy, name).unwrap(), ["'self'"], "{name}");
        }
        for name in ["default-src", "connect-src"] {
            let sources = sources(&policy, name).unwrap();
            assert!(sources.contains(&"http:") && sources.contains(&"https:"));
            assert!(
                !sources
                    .iter()
                    .any(|own| own.starts_with("ws") || *own == "*"),
                "{policy}"
            );
        }
        let ancestors = sources(&policy, "frame-ancestors").unwrap();
        assert_eq!(ancestors, ["'self'", "http://localhost:1"]);
        assert!(!policy.contains("upgrade-insecure-requests"));
    }

    /// Fails if a page without scripts can run one, or loads anything from another host.
    #[test]
    fn no_script_policy_keeps_to_its_host() {
        let policy = HostFacts::default().no_script();
        assert_eq!(sources(&policy, "script-src").unwrap(), ["'none'"]);
        assert!(
            !sources(&policy, "sandbox")
                .unwrap()
                .contains(&"allow-scripts")
        );
        assert!(
            !policy.contains("http") && !policy.contains('*'),
            "{policy}"
        );
        assert_eq!(sources(&policy, "frame-ancestors").unwrap(), ["'self'"]);
    }

    /// Fails if plain URLs of an archived page are stopped as mixed content where the host has TLS.
    #[test]
    fn encrypted_host_upgrades_plain_urls() {
        let around = HostFacts {
            page_host: None,
            is_encrypted: true,
        };
        assert!(
            around
                .framed_page()
                .ends_with("; upgrade-insecure-requests")
        );
    }
}
