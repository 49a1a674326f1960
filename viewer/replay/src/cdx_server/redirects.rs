//! Self-redirects: captures that lead back to their own key, as from `http://` to `https://`.

use archive_formats::cdx::Capture;
use archive_formats::surt::UrlKey;
use url::Url;

/// Returns whether a capture is a redirect to its own key.
pub(super) fn is_self_redirect(capture: &Capture) -> bool {
    if !capture.status.is_some_and(|s| (300..400).contains(&s)) {
        return false;
    }
    let Some(target) = capture.redirect.as_deref().filter(|r| !r.is_empty()) else {
        return false;
    };
    // What cannot be resolved is taken as it stands: any text gives a key.
    let base = capture
        .original
        .as_deref()
        .and_then(|url| Url::parse(url).ok());
    let resolved = base.and_then(|base| base.join(target).ok());
    let key = match &resolved {
        Some(url) => UrlKey::parse(url.as_str()),
        None => UrlKey::parse(target),
    };
    key.as_str() == capture.key
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a redirect to elsewhere is taken for one to itself, or the other way round.
    #[test]
    fn self_redirects_lead_to_their_key() {
        let check = |original: &str, status: u16, redirect: Option<&str>, expected: bool| {
            let stamp = "20170819040336".parse().unwrap();
            let mut capture = Capture::new(UrlKey::parse(original).as_str(), stamp);
            capture.original = Some(original.to_owned());
            capture.status = Some(status);
            capture.redirect = redirect.map(str::to_owned);
            assert_eq!(
                is_self_redirect(&capture),
                expected,
                "{original} {redirect:?}"
            );
        };
        check("http://a.org/", 301, Some("https://www.a.org/"), true);
        check("http://a.org/", 302, Some("/"), true);
        check("http://a.org/x", 302, Some("//www.a.org/x"), true);
        check("http://a.org/b/x", 302, Some("x#y"), true);
        check("http://a.org/", 301, Some("https://b.org/"), false);
        check("http://a.org/x", 302, Some("/y"), false);
        check("http://a.org/", 200, Some("https://www.a.org/"), false);
        check("http://a.org/", 301, None, false);
        check("http://a.org/", 301, Some(""), false);
    }
}
