//! The memory that the components of batch jobs may take on this node.
//!
//! Owns the share of each job. The share is the same for all jobs: no job ever waits for memory that another one has,
//! which may wait for the first on another node. Does not own the limit of one component, which the job sets, nor the
//! memory for compiling.

use std::num::NonZero;

use archive_daemon::ByteSize;

/// The bytes for all jobs together, if the machine has little memory or does not say how much.
const LEAST: u64 = 2 << 30;

/// Returns the bytes that one of `jobs` may take. All of them together may take `set` bytes; if that is not set, half
/// of the `installed` memory, but at least [`LEAST`].
pub(crate) fn memory_share(
    set: Option<ByteSize>,
    installed: Option<u64>,
    jobs: NonZero<u16>,
) -> u64 {
    let all = set.map_or_else(
        || (installed.unwrap_or_default() / 2).max(LEAST),
        ByteSize::bytes,
    );
    all / u64::from(jobs.get())
}

/// Returns how many components of `each` bytes are begun at once: as many as fit into a share, but at most `most`, and
/// always one.
pub(crate) fn fitting_jobs(share: u64, each: u64, most: NonZero<usize>) -> NonZero<usize> {
    let fitting = share.checked_div(each).unwrap_or(u64::MAX);
    let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
    NonZero::new(fitting)
        .unwrap_or(NonZero::<usize>::MIN)
        .min(most)
}

/// Returns the memory of this machine (`proc_meminfo(5)`), in bytes.
pub(crate) fn installed_memory() -> Option<u64> {
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

    /// Fails if a job may take the memory of others, or a machine without a setting gives none.
    #[test]
    fn each_job_has_an_equal_share_of_memory() {
        let set = |bytes| Some(ByteSize::from_bytes(bytes));
        for (set, installed, expected) in [
            (set(4096), Some(64 << 30), 1024),
            (set(3), None, 0),
            (None, Some(64 << 30), 8 << 30),
            (None, Some(1 << 30), LEAST / 4),
            (None, None, LEAST / 4),
        ] {
            assert_eq!(
                memory_share(set, installed, FOUR),
                expected,
                "{installed:?}"
            );
        }
    }

    /// Fails if components take more memory than their job has, or a large one never begins.
    #[test]
    fn one_job_always_begins_others_if_they_fit() {
        for (share, each, most, expected) in [
            (1024, 512, 4, 2),
            (1024, 512, 1, 1),
            (1023, 512, 4, 1),
            (511, 512, 4, 1),
            (0, 512, 4, 1),
            (u64::MAX, 1, usize::MAX, usize::MAX),
            (0, 0, 3, 3),
        ] {
            let most = NonZero::new(most).unwrap();
            assert_eq!(
                fitting_jobs(share, each, most).get(),
                expected,
                "{share} {each}"
            );
        }
    }

    /// Fails if the memory of a machine is read from another line, or from damaged text.
    #[test]
    fn installed_memory_is_read_from_its_line() {
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
        assert!(installed_memory().is_some(), "the tests run on Linux");
    }
}
