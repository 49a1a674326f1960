//! The style sheet and the icon: compiled in, and named by their content, so that browsers keep them for a year.

use archive_formats::digest::{Algorithm, digest_bytes};
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Response};

/// The files: name, ending, media type and content.
const FILES: [(&str, &str, &str, &str); 2] = [
    (
        "pages",
        "css",
        "text/css; charset=utf-8",
        include_str!("../../static/pages.css"),
    ),
    (
        "icon",
        "svg",
        "image/svg+xml",
        include_str!("../../static/icon.svg"),
    ),
];

/// The files that pages refer to.
#[derive(Clone, Debug)]
pub(crate) struct Assets {
    files: Vec<Asset>,
}

#[derive(Clone, Debug)]
struct Asset {
    name: &'static str,
    path: String,
    media: &'static str,
    content: &'static str,
}

impl Assets {
    /// Loads the files and names them by their content.
    pub(crate) fn new() -> Self {
        let files = FILES.into_iter().map(|(name, ending, media, content)| {
            let digest = digest_bytes(Algorithm::Sha256, content.as_bytes()).to_string();
            let (_, value) = digest.split_once(':').unwrap_or(("", &digest));
            let mark: String = value
                .chars()
                .filter(char::is_ascii_alphanumeric)
                .take(16)
                .collect();
            Asset {
                name,
                path: format!("/static/{name}-{}.{ending}", mark.to_ascii_lowercase()),
                media,
                content,
            }
        });
        Self {
            files: files.collect(),
        }
    }

    /// Returns the path of a file.
    pub(crate) fn asset_path(&self, name: &str) -> &str {
        let mut files = self.files.iter();
        let found = files.find(|file| file.name == name);
        found.map_or("/static/", |file| &file.path)
    }

    /// Returns the answer at a path, if there is a file.
    pub(crate) fn answer_asset(&self, path: &str) -> Option<Response<Body>> {
        let asset = self.files.iter().find(|file| file.path == path)?;
        let mut response = Response::new(Body::from(asset.content));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media));
        let cache = HeaderValue::from_static("public, max-age=31536000, immutable");
        headers.insert(CACHE_CONTROL, cache);
        Some(response)
    }
}
