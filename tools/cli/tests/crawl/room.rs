//! A file that is larger than the disk of the crawler.

use std::fs::File;

use crate::mounts::{has_own_mounts, run};
use crate::support::job::crawl;
use crate::support::nginx::Nginx;
use crate::support::tools::nginx;

/// The pages beside the film.
const PAGES: usize = 20;

/// Fails if a file that the disk has no room for is asked for again and again, keeps the rest of its site away, or passes
/// for whole.
#[test]
fn file_larger_than_the_disk_is_recorded_as_far_as_it_fits() {
    let test = "room::file_larger_than_the_disk_is_recorded_as_far_as_it_fits";
    let Some(nginx) = nginx().filter(|_| has_own_mounts(test)) else {
        return;
    };
    // 400 MB have to be free for a fetch to begin.
    let disk = tempfile::tempdir().unwrap();
    let folder = disk.path().to_str().unwrap();
    run(
        "mount",
        &["-t", "tmpfs", "-o", "size=600M", "tmpfs", folder],
    );
    let site = tempfile::tempdir().unwrap();
    let links = (0..PAGES).map(|page| format!("<a href='/{page}.html'>{page}</a>"));
    let links: String = links.collect();
    let home = format!("<video src='/film.mp4'></video>{links}");
    for page in 0..PAGES {
        std::fs::write(
            site.path().join(format!("{page}.html")),
            format!("page {page}"),
        )
        .unwrap();
    }
    std::fs::write(site.path().join("index.html"), home).unwrap();
    let film = File::create(site.path().join("film.mp4")).unwrap();
    film.set_len(1 << 30).unwrap();
    let root = site.path().display();
    let server = Nginx::start(
        &nginx,
        &format!(
            "server {{ listen 127.0.0.1:{{port}}; types {{ video/mp4 mp4; text/html html; }} root {root}; }}"
        ),
    );
    let (job, report) = crawl(disk.path(), &[&server.base(), "--delay", "0"]);
    assert_eq!(report["outcome"], "finished", "{report}");
    let log = job.log();
    let pages = log
        .iter()
        .filter(|line| line.status == 200 && line.uri.contains(".html"));
    assert_eq!(pages.count(), PAGES);
    let films: Vec<_> = log
        .iter()
        .filter(|line| line.uri.ends_with("/film.mp4"))
        .collect();
    assert_eq!(films.len(), 1, "{films:?}");
    assert!(
        films[0].annotations.contains(&"lenTrunc".to_owned()),
        "{films:?}"
    );
    assert!((64 << 20..1 << 30).contains(&films[0].size()), "{films:?}");
    let asked = server.requests().into_iter();
    assert_eq!(
        asked.filter(|request| request.path == "/film.mp4").count(),
        1
    );
}
