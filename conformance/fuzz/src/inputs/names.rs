//! Names, sets of groups as they are on the wire, and the ends of records.

use archive_formats::record_end::{RecordEnd, RecordProgress};
use archive_model::FileName;
use archive_model::file_name::MAX_LENGTH;
use proto_archive::convert;
use proto_archive::wire::GroupRange;

pub(super) fn file_name_seeds() -> Vec<Vec<u8>> {
    ["12-34-20260101-00001.warc.gz", "Måned (1)~+,@%=.arc", "a"]
        .map(|name| name.as_bytes().to_vec())
        .to_vec()
}

pub(super) fn file_name(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(name) = FileName::new(&text) else {
        return;
    };
    assert_eq!(name.as_str(), text, "kept as it is");
    assert!((1..=MAX_LENGTH).contains(&text.len()));
    assert!(!text.contains(['/', '\\', '\0']) && !text.starts_with('.'));
    assert!(!text.chars().any(char::is_control));
}

pub(super) fn groups_seeds() -> Vec<Vec<u8>> {
    let pairs: [&[u64]; 3] = [&[], &[0, 1], &[3, 5, 7, 9, 1000, u64::MAX]];
    pairs
        .iter()
        .map(|numbers| {
            numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect()
        })
        .collect()
}

/// Pairs of numbers.
pub(super) fn groups(input: &[u8]) {
    let numbers: Vec<u64> = input
        .chunks_exact(8)
        .filter_map(|chunk| chunk.try_into().ok().map(u64::from_le_bytes))
        .collect();
    let ranges: Vec<GroupRange> = numbers
        .chunks_exact(2)
        .filter_map(|pair| match pair {
            [start, end] => Some(GroupRange {
                start: *start,
                end: *end,
            }),
            _ => None,
        })
        .collect();
    let Ok(groups) = convert::read_groups("groups", &ranges) else {
        return;
    };
    assert_eq!(
        convert::group_ranges(&groups),
        ranges,
        "written as it was read"
    );
    let size = numbers.first().copied().unwrap_or_default();
    let all = groups.byte_ranges(size).chain(groups.byte_ranges(u64::MAX));
    assert!(all.into_iter().all(|range| range.start <= range.end));
    assert_eq!(groups.union(&groups), groups);
    assert!(groups.difference(&groups).is_empty());
    assert_eq!(groups.is_empty(), ranges.is_empty());
}

/// `hello`, as `gzip -n` compresses it.
const MEMBER: [u8; 25] = [
    0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10, 0x36,
    5, 0, 0, 0,
];

pub(super) fn record_end_seeds() -> Vec<Vec<u8>> {
    vec![
        b"WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: 5\r\n\r\nhello\r\n\r\nWARC/1.1"
            .to_vec(),
        b"WARC/1.0\nContent-Length: 0\n\n\n\n".to_vec(),
        b"http://a.example/ 192.0.2.1 20080430204825 text/html 5\nhello\nhttp".to_vec(),
        MEMBER.to_vec(),
        [MEMBER, MEMBER].concat(),
    ]
}

fn end(input: &[u8], step: usize) -> Option<usize> {
    let mut search = RecordEnd::new();
    let mut at = 0;
    for piece in input.chunks(step) {
        match search.push(piece).ok()? {
            RecordProgress::Continues => at += piece.len(),
            RecordProgress::Ends(used) => {
                assert!(used <= piece.len());
                return Some(at + used);
            }
        }
    }
    search.end_of_file().ok().map(|()| at)
}

pub(super) fn record_end(input: &[u8]) {
    let whole = end(input, usize::MAX);
    assert_eq!(end(input, 1), whole, "pieces do not matter");
    assert_eq!(end(input, 7), whole, "pieces do not matter");
    if let Some(length) = whole {
        assert!((1..=input.len()).contains(&length));
    }
}
