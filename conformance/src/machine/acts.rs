//! Further acts of a node on its files, repeated endlessly: it mends, puts aside, takes back and adopts.
//!
//! Each act is said before it begins and when it is done, so that the test that pulls the plug knows what must be so.
//! Not promised: that it ends by itself. It continues until it is killed or refused.
//!
//! # Errors
//!
//! All functions fail if the disk or the node refuses.

use std::fs::{File, OpenOptions, Permissions};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::{FileExt, PermissionsExt};

use anyhow::{Context, Result};
use archive_bitarchive::attic::{AtticId, RemovalOrder};
use archive_bitarchive::{Layout, Node};
use archive_durable::directory;
use archive_model::{Cause, FileName, Groups, MendOrder, Root};
use archive_proof::testing::signing_key;
use archive_proof::{CopyBytes, TreeBuilder, encode_ranges};
use jiff::Timestamp;

use super::{CrashMachine, admission, content, root, volume};

/// The file that is damaged and mended.
pub const MENDED: &str = "mended-100000";

/// The file that goes into the attic and comes back.
pub const MOVED: &str = "moved-50000";

/// The size of a group, in bytes.
const GROUP: usize = 16 * 1024;

/// The groups that are damaged.
const DAMAGED: [u64; 2] = [1, 5];

/// The output to which acts report their steps.
pub trait ActOutput: Sync {
    /// Writes one line, and flushes it.
    fn write_line(&self, line: &str) -> Result<()>;
}

/// Returns the groups of [`MENDED`] that are damaged.
pub fn damaged_groups() -> Groups {
    DAMAGED.into_iter().collect()
}

/// Returns the content of [`MENDED`], with every byte of the damaged groups other than it was.
pub fn damaged_content() -> Result<Vec<u8>> {
    let mut bytes = content(&FileName::new(MENDED)?)?;
    for range in byte_ranges() {
        let spoilt = bytes.get_mut(range).context("shorter than that")?;
        for byte in spoilt {
            *byte ^= 1;
        }
    }
    Ok(bytes)
}

/// Returns the ranges of the damaged groups in bytes.
pub fn byte_ranges() -> impl Iterator<Item = Range<usize>> {
    let size = 100_000;
    DAMAGED
        .into_iter()
        .filter_map(|group| usize::try_from(group).ok())
        .map(move |group| group * GROUP..(group * GROUP + GROUP).min(size))
}

/// Damages the file and mends it, until something is refused.
pub fn mend_on(machine: &CrashMachine, node: &Node, now: i64, out: &dyn ActOutput) -> Result<()> {
    loop {
        out.write_line("doing damage")?;
        damage(machine)?;
        out.write_line("did damage")?;
        out.write_line("doing mend")?;
        mend(node, now)?;
        out.write_line("did mend")?;
    }
}

/// Moves the file into the attic and back, until something is refused.
pub fn move_on(node: &Node, now: i64, out: &dyn ActOutput) -> Result<()> {
    let name = FileName::new(MOVED)?;
    let expected = root(&content(&name)?);
    let cause = Cause::new("officer/o", "a test")?;
    let now = Timestamp::from_second(now)?;
    let removal = RemovalOrder {
        name,
        volume: volume()?,
        checksum: expected,
        cause: cause.clone(),
    };
    loop {
        out.write_line("doing aside")?;
        let item = node.attic.put_copy_aside(&removal, now)?;
        out.write_line("did aside")?;
        out.write_line("doing back")?;
        node.attic
            .restore_item(&volume()?, &AtticId::new(&item.id)?, &cause, now)?;
        out.write_line("did back")?;
    }
}

/// Lets strangers appear, named so, and adopts them, until something is refused.
pub fn adopt_on(
    machine: &CrashMachine,
    node: &Node,
    prefix: &str,
    now: i64,
    out: &dyn ActOutput,
) -> Result<()> {
    for (number, size) in [100, 70_000, 16_384].into_iter().cycle().enumerate() {
        let name = FileName::new(&format!("{prefix}-{number}-{size}"))?;
        stranger(machine, &name)?;
        out.write_line(&format!("doing adopt {name}"))?;
        adopt(node, &name, now)?;
        out.write_line(&format!("did adopt {name}"))?;
    }
    Ok(())
}

/// Damages the file behind the node's back, durably, as rot does.
pub fn damage(machine: &CrashMachine) -> Result<()> {
    let name = FileName::new(MENDED)?;
    let path = Layout::new(&machine.disk()).target_paths(&name).file;
    let spoilt = damaged_content()?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o644))?;
    let file = OpenOptions::new().write(true).open(&path)?;
    for range in byte_ranges() {
        let bytes = spoilt.get(range.clone()).context("shorter than that")?;
        file.write_all_at(bytes, range.start as u64)?;
    }
    file.sync_all()?;
    Ok(std::fs::set_permissions(
        &path,
        Permissions::from_mode(0o444),
    )?)
}

/// Brings the damaged groups, as a repository would.
pub fn mend(node: &Node, now: i64) -> Result<()> {
    let name = FileName::new(MENDED)?;
    let now = Timestamp::from_second(now)?;
    let bytes = content(&name)?;
    let mut builder = TreeBuilder::new(Vec::new());
    builder.update(&bytes)?;
    let tree = builder.finish()?;
    let go_on = &mut |_: u64| ControlFlow::Continue(());
    node.files.verify_copy(&name, None, now, go_on)?;
    let order = MendOrder {
        name,
        volume: None,
        root: tree.root,
        groups: damaged_groups(),
        who: "officer/o".to_owned(),
        why: "a test".to_owned(),
    };
    let mut mend = node.files.begin_mend(order, now)?;
    for range in damaged_groups().byte_ranges(tree.size) {
        let mut encoded = Vec::new();
        let ranges = std::slice::from_ref(&range);
        let copy = CopyBytes {
            data: &bytes,
            outboard: Some(&tree.sink),
        };
        encode_ranges(copy, tree.content(), ranges, &mut encoded)?;
        mend.write_segment(range.start, range.end - range.start, &encoded, go_on)?;
    }
    mend.close_mend(now, go_on)?;
    Ok(())
}

/// Puts a file under its final name that nobody admitted, durably and as a whole.
fn stranger(machine: &CrashMachine, name: &FileName) -> Result<()> {
    let path = Layout::new(&machine.disk()).target_paths(name).file;
    let beside = machine.disk().join(format!(".stranger-{name}"));
    let file = File::create_new(&beside)?;
    file.write_all_at(&content(name)?, 0)?;
    file.sync_all()?;
    Ok(directory::move_new(&beside, &path)?)
}

/// Gives a stranger its admission.
pub fn adopt(node: &Node, name: &FileName, now: i64) -> Result<Option<Root>> {
    let signed = admission(name, now)?.sign(&signing_key())?;
    let entry = node
        .files
        .adopt_file(name, &volume()?, &signed, Timestamp::from_second(now)?)?;
    Ok(entry.row.root)
}
