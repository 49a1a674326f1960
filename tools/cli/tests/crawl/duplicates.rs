//! Crawls of a site that has not changed: hardly a byte is stored again, and each revisit leads to a response of the
//! first crawl.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::archive::content;
use crate::support::job::{JobFolder, crawl, executable, run};
use crate::support::nginx::Nginx;
use crate::support::tools::Tools;

/// The pages, and pictures, under either path of the site.
const PAGES: usize = 40;

/// Writes pages with a picture each. What has links is never asked for conditionally; a picture is.
fn write_site(root: &Path) {
    for page in 0..PAGES {
        let next = [page + 1, page * 3 + 1].map(|next| next % PAGES);
        let links = next
            .map(|next| format!("<a href='{next}.html'>{next}</a>"))
            .concat();
        let text = format!("<p>Page {page}.</p>").repeat(100 + page);
        let html = format!("<html><body>{links}<img src='{page}.png'>{text}</body></html>");
        std::fs::write(root.join(format!("{page}.html")), html).unwrap();
        let picture = content(&format!("picture {page}"), 5000 + page);
        std::fs::write(root.join(format!("{page}.png")), picture).unwrap();
    }
}

/// A site with validators under one path and without any under the other, and the crawls of it.
struct Crawls {
    tools: Tools,
    directory: tempfile::TempDir,
    site: Nginx,
}

impl Crawls {
    fn begin() -> Option<Self> {
        let tools = Tools::find()?;
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        std::fs::create_dir(&root).unwrap();
        write_site(&root);
        let root = root.display();
        let http = format!(
            "server {{ listen 127.0.0.1:{{port}};
             location /etag/ {{ alias {root}/; }}
             location /none/ {{ alias {root}/; etag off; if_modified_since off; add_header Last-Modified ''; }} }}"
        );
        let site = Nginx::start(&tools.nginx, &http);
        Some(Self {
            tools,
            directory,
            site,
        })
    }

    /// Crawls the site once, with words more. The name is the number of the job.
    fn crawl(&self, name: &str, words: &[&str]) -> JobFolder {
        let seeds = ["etag", "none"].map(|path| format!("{}{path}/0.html", self.site.base()));
        let all = [
            &seeds[0],
            &seeds[1],
            "--delay",
            "0",
            "--connections",
            "4",
            "--job",
        ];

        let all = [&all[..], &[name], words].concat();
        crawl(&self.directory.path().join(name), &all).0
    }

    /// Builds the index of these crawls, which ends with this code, and crawls by it.
    #[track_caller]
    fn crawl_again(&self, name: &str, earlier: &[&JobFolder], code: i32) -> JobFolder {
        let index = self.directory.path().join(format!("{name}.dedup"));
        let metadata = earlier.iter().map(|job| job.metadata());
        let mut command = executable();
        command.args(["index", "dedup"]).args(metadata);
        run(command.arg("-o").arg(&index)).expect(code);
        let words = ["--dedup", index.to_str().unwrap(), "--dedup-all"];
        self.crawl(name, &words)
    }

    /// Follows the revisits of a crawl into the files of earlier ones.
    fn judge(&self, later: &JobFolder, earlier: &[&JobFolder]) -> Value {
        let log = later.path().join("logs/crawl.log");
        let mut files: Vec<PathBuf> = Vec::new();
        for job in earlier {
            files.extend(job.archive_files());
        }
        files.push("--".into());
        files.extend(later.archive_files());
        self.tools
            .judge("revisits.py", &[log.to_str().unwrap()], &files)
    }
}

/// Fails if a second crawl stores an unchanged payload again, a revisit leads to no response of the first crawl, or an
/// unchanged picture is transferred again; or if a third crawl refers to a revisit.
#[test]
fn unchanged_site_is_stored_once() {
    let Some(crawls) = Crawls::begin() else {
        return;
    };
    let first = crawls.crawl("1", &[]);
    let second = crawls.crawl_again("2", &[&first], 0);
    let judged = crawls.judge(&second, &[&first]);
    let new = judged["new"].as_u64().unwrap();
    let all = judged["first"].as_u64().unwrap();
    assert!(
        new * 100 < all * 2,
        "{new} of {all} bytes are new: {judged}"
    );
    // The pictures with an ETag; all pages, and the pictures without one.
    assert_eq!(judged["profiles"]["server-not-modified"], PAGES, "{judged}");
    assert_eq!(
        judged["profiles"]["identical-payload-digest"],
        3 * PAGES,
        "{judged}"
    );
    // Neither of the two is there: what is missing has no payload to refer to.
    let missing = ["robots.txt", "favicon.ico"].map(|name| format!("{}{name}", crawls.site.base()));
    assert_eq!(judged["responses"], serde_json::json!(missing));
    assert_eq!(second.uris(), first.uris());
    second.check_files();
    assert!(crawls.tools.warcio_failures(&second.files()).is_empty());

    // The judge knows a revisit when a record refers to one.
    let third = crawls.crawl_again("3", &[&first, &second], 0);
    let judged = crawls.judge(&third, &[&first, &second]);
    assert_eq!(judged["profiles"]["server-not-modified"], PAGES, "{judged}");
    assert_eq!(
        judged["profiles"]["identical-payload-digest"],
        3 * PAGES,
        "{judged}"
    );
    // Without the metadata of the first crawl there are no revisits of revisits, but a word that it is missing.
    let fourth = crawls.crawl_again("4", &[&second], 1);
    crawls.judge(&fourth, &[&first, &second]);
    assert_eq!(fourth.uris(), first.uris());
}
