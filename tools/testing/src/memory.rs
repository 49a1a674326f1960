//! The memory of a process, as Linux accounts for it.

/// Returns the most memory that a process has had so far, in KiB: `VmHWM` of proc(5). `process` is a process id, or
/// `self`.
///
/// # Panics
///
/// If the process has ended, or the system does not report its memory.
#[must_use]
#[track_caller]
#[expect(clippy::panic, reason = "a test that cannot measure fails")]
pub fn peak_memory(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.unwrap_or_else(|error| panic!("process {process}: {error}"));
    let mut lines = status.lines();
    let peak = lines.find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|text| text.trim().strip_suffix(" kB")?.parse().ok());
    kib.unwrap_or_else(|| panic!("the system does not report the memory of process {process}"))
}

#[cfg(test)]
mod tests {
    use super::peak_memory;

    /// Fails if memory that this process has filled is not counted, or is counted in another unit.
    #[test]
    fn filled_memory_is_counted() {
        let filled = std::hint::black_box(vec![1_u8; 64 << 20]);
        let peak = peak_memory("self");
        let limit = 16 * filled.len() as u64;
        assert!(peak > 64 << 10 && peak < limit >> 10, "{peak} KiB");
    }
}
