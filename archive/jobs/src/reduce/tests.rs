//! Tests of the room that a result takes on disk, beside itself.

use archive_model::JobId;

use super::*;
use crate::table::tests::row;

/// More lines than are sorted in memory.
const LINES: u64 = 80;
const LINE: usize = 1 << 20;

/// Fails if a sort fills the disk beyond the limit of all jobs, or is refused although there is room.
#[test]
fn sorting_on_disk_takes_room_too() {
    let directory = tempfile::tempdir().unwrap();
    let folder = JobFolder::new(directory.path(), &JobId::new("j").unwrap());
    folder.make_folder().unwrap();
    let mut output = folder.append_file(JobFile::Output, 0).unwrap();
    let mut row = row("j", "researcher/anna");
    for at in 0..LINES {
        let mut line = format!("{:03}", LINES - at).into_bytes();
        line.resize(LINE - 1, b'x');
        line.push(b'\n');
        output.append(&line).unwrap();
        row.checkpoint.output += line.len() as u64;
    }
    let bytes = row.checkpoint.output;
    let made = |times: u64| {
        let space = Space::new(directory.path(), Some(times * bytes)).unwrap();
        let made = reduce_result(Reduce::Sort, &row, &folder, &space, &StopControl::default());
        folder.drop_file(JobFile::Result).unwrap();
        space.measure_space().unwrap();
        space.take_bytes((times - 1) * bytes).unwrap();
        made
    };
    // The output and the result have room in this; what lies between them has not.
    let why = made(2).unwrap_err();
    assert!(why.contains("batch.space"), "{why}");
    assert_eq!(made(3), Ok(Some(bytes)));
}
