//! Crawls whose disk loses its power: resumed, they are as if nothing had happened, but that some pages are asked for
//! again.
//!
//! Needs root. Where it cannot run, it says so.

use std::collections::BTreeSet;

use crate::image::{FLUSHED, Image, UNFLUSHED, cut_power};
use crate::interruptions::{InterruptedCrawl, PAGES, is_as_undisturbed, undisturbed, write_site};
use crate::mounts::has_own_mounts;
use crate::support::nginx::Nginx;
use crate::support::relay::Relay;
use crate::support::tools::{Tools, dice};

/// Fails if power cuts cost a crawl a URI or a valid file, or it has a response twice.
#[test]
fn crawl_survives_power_cuts() {
    const CUTS: usize = 8;
    let Some(tools) = Tools::find() else { return };
    if !has_own_mounts("power::crawl_survives_power_cuts") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    write_site(root.path());
    let site = Nginx::serve(&tools.nginx, root.path());
    let relay = Relay::to(site.port);
    let expected = undisturbed(&relay);
    let before = site.requests_when(|requests| requests.len() == expected.len());
    // On a disk with less than 400 MB free a crawl waits for room. The file of the image has holes.
    let image = Image::new("1G", &[]);
    let base = image.mounted().join("crawl");
    let crawl = InterruptedCrawl {
        relay: &relay,
        base: &base,
    };
    let mut dice = dice();
    let share = 2 * PAGES as u64 / (CUTS as u64 + 1);
    for cut in 0..CUTS {
        let how = if cut % 2 == 0 { UNFLUSHED } else { FLUSHED };
        let pieces = usize::try_from(1 + dice.below(share)).unwrap();
        let mounted = image.mounted();
        crawl.run_until(pieces, move || cut_power(&mounted, how));
        image.unmount();
        image.mount();
    }
    let job = crawl.finish();
    is_as_undisturbed(&tools, &job, &expected);
    let requests = site.requests().split_off(before.len());
    let paths: BTreeSet<&str> = requests
        .iter()
        .map(|request| request.path.as_str())
        .collect();
    println!(
        "{CUTS} power cuts, {} requests for {} URIs",
        requests.len(),
        paths.len()
    );
}
