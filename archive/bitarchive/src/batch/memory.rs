//! How much memory the components of batch jobs may take on this node.
//!
//! Owns the share of each job. It is the same for all, whoever comes first: a job never waits for memory that another
//! has, which may wait for the first on another node.

use std::num::NonZero;

use archive_daemon::ByteSize;

/// Of all jobs together, where the machine has little or does not say what it has.
const LEAST: u64 = 2 << 30;

/// The bytes that one of `jobs` may take, when `set` is for all of them together: half of what the machine has, where
/// nothing is set.
pub(super) fn share(set: Option<ByteSize>, jobs: NonZero<u16>) -> u64 {
    let all = set.map_or_else(
        || (installed().unwrap_or_default() / 2).max(LEAST),
        ByteSize::bytes,
    );
    all / u64::from(jobs.get())
}

/// How many components of so many bytes each, but at most `most`, fit into a share.
pub(super) fn fitting(share: u64, each: u64, most: usize) -> usize {
    let fitting = share.checked_div(each).unwrap_or(u64::MAX);
    usize::try_from(fitting).unwrap_or(usize::MAX).min(most)
}

/// The memory of this machine (`proc_meminfo(5)`), in bytes.
fn installed() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    total(&text)
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: NonZero<u16> = NonZero::<u16>::MIN.saturating_add(3);

    #[test]
    fn what_is_set_is_shared_among_the_jobs() {
        assert_eq!(share(Some(ByteSize::from_bytes(4096)), FOUR), 1024);
        assert_eq!(share(Some(ByteSize::from_bytes(3)), FOUR), 0);
        assert!(share(None, FOUR) >= LEAST / 4);
    }

    #[test]
    fn no_more_are_computed_than_fit() {
        for (share, each, most, expected) in [
            (1024, 512, 4, 2),
            (1024, 512, 1, 1),
            (1023, 512, 4, 1),
            (511, 512, 4, 0),
            (u64::MAX, 1, usize::MAX, usize::MAX),
            (0, 0, 3, 3),
        ] {
            assert_eq!(fitting(share, each, most), expected, "{share} {each}");
        }
    }

    #[test]
    fn the_memory_of_a_machine_is_what_it_says() {
        let text = "MemFree:  9 kB\nMemTotal:       24570032 kB\nMemFree:        1 kB\n";
        assert_eq!(total(text), Some(24_570_032 * 1024));
        for text in [
            "",
            "MemTotal: x kB",
            "MemTotal: 7",
            "MemTotal: 99999999999999999999 kB",
            "MemTotal: 18446744073709551615 kB",
        ] {
            assert_eq!(total(text), None, "{text}");
        }
        assert!(installed().is_some(), "the tests run on Linux");
    }
}
