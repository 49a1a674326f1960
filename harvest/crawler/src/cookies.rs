//! The cookies of a crawl that runs.
//!
//! Owns that every request gets the cookies that its host has set, and no other ones, unless the order says to keep
//! none. They are in memory as long as the crawl runs: one that is resumed begins without cookies, and logs in again.
//! They are bytes of the wire, so that records have them.

use archive_daemon::clock::Clock;
use archive_formats::http::Head;
use harvest_model::order::HttpSettings;
use harvest_policy::cookies::CookieJar;
use parking_lot::Mutex;
use url::Url;

/// The cookies of a crawl, by the clock.
///
/// ```
/// use archive_daemon::clock::Clock;
/// use archive_formats::http::Head;
/// use harvest_crawler::cookies::CrawlCookies;
/// use harvest_model::order::HttpSettings;
///
/// let cookies = CrawlCookies::new(&HttpSettings::default(), Clock::system_clock());
/// let url = "https://example.org/".parse()?;
/// let head = Head::read_head(&mut &b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\n\r\n"[..], 1 << 16)?;
/// cookies.keep_cookies(&url, &head);
/// assert_eq!(cookies.cookie_field(&url).as_deref(), Some("a=1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CrawlCookies {
    /// `None`: the order says to keep no cookies.
    jar: Option<Mutex<CookieJar>>,
    clock: Clock,
}

impl CrawlCookies {
    /// Makes a store without cookies.
    pub fn new(settings: &HttpSettings, clock: Clock) -> Self {
        Self {
            jar: settings.cookies.then(Mutex::default),
            clock,
        }
    }

    /// Returns the value of `Cookie` for a request.
    pub fn cookie_field(&self, url: &Url) -> Option<String> {
        let jar = self.jar.as_ref()?;
        let mut jar = jar.lock();
        jar.cookie_field(url, self.clock.now().as_second())
    }

    /// Keeps the cookies of a response.
    pub fn keep_cookies(&self, url: &Url, head: &Head) {
        let Some(jar) = &self.jar else {
            return;
        };
        let now = self.clock.now().as_second();
        for field in head.all_values("set-cookie") {
            let mut jar = jar.lock();
            jar.keep_cookie(url, field, now);
        }
    }
}
