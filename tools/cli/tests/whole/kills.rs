//! Parts that are killed while files are stored: what was acknowledged is there, whole, and without a person's help.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;
use tools_testing::{Random, skipped};

use crate::archive::{Archive, content, executable, files_below, wait};

pub const PARTS: [&str; 6] = [
    "repository",
    "bitarchive-one",
    "bitarchive-two",
    "monitor-one",
    "monitor-two",
    "checksum-replica-three",
];

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().expect("a number"),
        Err(_absent) => default,
    }
}

/// Returns the number of kills, `usual` unless the environment says otherwise, and the seed of all choices.
pub fn chosen(usual: u64) -> (u64, u64) {
    let kills = number("HOLDFAST_KILLS", usual);
    let seed = number("HOLDFAST_SEED", u64::from(std::process::id()) | 1);
    println!("{kills} kills, seed {seed}");
    (kills, seed)
}

/// Ends the depositors when it is dropped: after the last kill, or when a kill failed.
struct Ends<'flag>(&'flag AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Fails if a part that is killed at a random moment takes an acknowledged file with it, or leaves a short file under a
/// final name.
///
/// `HOLDFAST_KILLS` is how often (60), `HOLDFAST_SEED` repeats the choices of a run.
#[test]
fn acknowledged_file_survives_every_kill() {
    let (kills, seed) = chosen(60);
    let mut archive = Archive::processes(&[]);
    let client = archive.data().join("client.toml");
    let scratch = archive.path("scratch");
    std::fs::create_dir(&scratch).expect("mkdir");
    let is_over = AtomicBool::new(false);
    let acknowledged = Mutex::new(BTreeMap::new());
    let refused = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for depositor in 0..4_u64 {
            let client = &client;
            let scratch = &scratch;
            let is_over = &is_over;
            let acknowledged = &acknowledged;
            let refused = &refused;
            scope.spawn(move || {
                let mut dice = Random::new(seed.wrapping_mul(depositor + 2));
                for number in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let name = format!("kill-{depositor}-{number}.warc.gz");
                    let size = usize::try_from(dice.below(300_000)).expect("small");
                    let path = scratch.join(&name);
                    std::fs::write(&path, content(&name, size)).expect("write");
                    let ended = executable()
                        .arg("--client")
                        .arg(client)
                        .arg("store")
                        .arg(&path)
                        .output()
                        .expect("store");
                    match ended.status.code() {
                        Some(0) => {
                            let mut all = acknowledged.lock();
                            all.insert(name, size);
                        }
                        Some(1 | 4) => {
                            let mut all = refused.lock();
                            all.push(path);
                        }
                        other => panic!("store ended with {other:?}: {ended:?}"),
                    }
                }
            });
        }
        let _ends = Ends(&is_over);
        let mut dice = Random::new(seed);
        for _ in 0..kills {
            // Random moments of a kill and of a restart: any moment is right.
            std::thread::sleep(Duration::from_millis(dice.below(800)));
            let part = PARTS[usize::try_from(dice.below(6)).expect("small")];
            archive.kill(part);
            std::thread::sleep(Duration::from_millis(dice.below(80)));
            archive.restart(part);
        }
    });
    archive.wait_until_alive();
    let acknowledged = acknowledged.into_inner();
    let refused = refused.into_inner();
    println!(
        "{} files acknowledged, {} stores reported a failure",
        acknowledged.len(),
        refused.len()
    );
    assert!(
        acknowledged.len() > 10,
        "something was stored between the kills"
    );
    for (name, size) in &acknowledged {
        for replica in ["one", "two"] {
            assert!(
                archive.is_whole(replica, name, *size),
                "{name} in {replica}"
            );
        }
    }
    let listed = archive
        .run(&["list", "--replica", "three", "--checksums"])
        .expect(0)
        .out;
    for (name, size) in &acknowledged {
        let line = format!("{}  {name}", blake3::hash(&content(name, *size)).to_hex());
        assert!(
            listed.lines().any(|listed| listed == line),
            "{line} in three"
        );
    }
    // Also what was not acknowledged is whole, or not there.
    for replica in ["one", "two"] {
        for path in files_below(&archive.volume(replica)) {
            let name = path
                .file_name()
                .expect("a name")
                .to_str()
                .expect("text")
                .to_owned();
            let kept = std::fs::read(&path).expect("read");
            assert!(kept == content(&name, kept.len()), "{name} in {replica}");
            let meant = std::fs::metadata(scratch.join(&name))
                .expect("it was stored")
                .len();
            assert_eq!(kept.len() as u64, meant, "{name} in {replica} is short");
        }
    }
    // What was on its way is finished by the archive alone, or by the depositor, who still has it.
    if !refused.is_empty() {
        let paths = refused.iter().map(|path| path.to_str().expect("text"));
        let words: Vec<&str> = std::iter::once("store").chain(paths).collect();
        archive.until(&words, 0);
    }
    archive.until(&["check", "files"], 0);
}

/// Returns whether this process ignores SIGHUP, the first bit of `SigIgn` (proc(5)), as all that it starts then does.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.expect("SigIgn").trim(), 16).expect("a mask");
    ignored & 1 == 1
}

/// Fails if a part of `up --processes` lives on when `up` was killed, or its terminal was closed.
#[test]
fn parts_end_with_their_up() {
    for signal in [Signal::HUP, Signal::KILL] {
        if signal == Signal::HUP && ignores_hangup() {
            skipped("SIGHUP is ignored here, as under nohup, and so it is by what a test starts");
            continue;
        }
        let mut archive = Archive::processes(&[]);
        let parts = [&PARTS[..], &["index", "viewer"]].concat();
        assert!(parts.iter().all(|part| archive.is_running(part)));
        archive.end_up(signal);
        wait("the end of all parts", || {
            let running = parts.iter().filter(|part| archive.is_running(part));
            let running: Vec<_> = running.collect();
            if running.is_empty() {
                Ok(())
            } else {
                Err(format!("{signal:?}: {running:?}"))
            }
        });
    }
}
