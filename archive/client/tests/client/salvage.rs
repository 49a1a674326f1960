//! The salvage of a file that is good nowhere: every good byte, and exactly the holes.

use archive_client::{Access, ClientError, FileRange, Hole, SalvagedPart};
use archive_model::FileName;
use proto_archive::wire::salvage_response::Hole as WireHole;
use tools_testing::noise;

use crate::world::ServedArchive;

const G: u64 = 16 * 1024;

async fn salvage(
    world: &ServedArchive,
    start: u64,
    end: Option<u64>,
) -> (Vec<u8>, Vec<Hole>, Result<(), ClientError>) {
    let wanted = FileRange {
        start,
        end,
        ..FileRange::whole_file(FileName::new("a").unwrap())
    };
    let mut bytes = Vec::new();
    let mut holes = Vec::new();
    let reader = world.reader();
    let mut salvage = match reader.salvage(&wanted).await {
        Ok(salvage) => salvage,
        Err(error) => return (bytes, holes, Err(error)),
    };
    loop {
        match salvage.next().await {
            Ok(Some(SalvagedPart::Bytes(more))) => bytes.extend_from_slice(&more),
            Ok(Some(SalvagedPart::Hole(hole))) => {
                assert_eq!(hole.start, start + bytes.len() as u64, "in order");
                bytes.resize(usize::try_from(hole.end - start).unwrap(), 0);
                holes.push(hole);
            }
            Ok(None) => return (bytes, holes, Ok(())),
            Err(error) => return (bytes, holes, Err(error)),
        }
    }
}

fn hole(start: u64, end: u64, unknown: bool) -> WireHole {
    WireHole {
        start,
        end,
        unknown,
    }
}

/// Fails if a salvage leaves out a good byte beside a hole, or a hole is longer or shorter than the damage in the
/// range.
#[tokio::test]
async fn every_good_byte_and_every_hole_comes() {
    let world = ServedArchive::new().await;
    let data = noise(200_000, 1);
    world.archive.put("a", &data);
    for holes in [
        vec![],
        vec![hole(0, G, false)],
        vec![hole(2 * G, 3 * G, false), hole(3 * G, 5 * G, true)],
        vec![hole(12 * G, 200_000, true)],
        vec![hole(0, 200_000, false)],
    ] {
        world.archive.state().holes.clone_from(&holes);
        for (start, end) in [(0, 200_000), (20_000, 90_000), (199_999, 200_000), (5, 6)] {
            let (bytes, found, outcome) = salvage(&world, start, Some(end)).await;
            outcome.unwrap();
            let mut expected = data.clone();
            let cut: Vec<Hole> = holes
                .iter()
                .map(|hole| Hole {
                    start: hole.start.max(start),
                    end: hole.end.min(end),
                    unknown: hole.unknown,
                })
                .filter(|hole| hole.start < hole.end)
                .collect();
            for hole in &cut {
                let range =
                    usize::try_from(hole.start).unwrap()..usize::try_from(hole.end).unwrap();
                expected[range].fill(0);
            }
            assert_eq!(found, cut, "{start}..{end}");
            let range = usize::try_from(start).unwrap()..usize::try_from(end).unwrap();
            assert!(bytes == expected[range], "{start}..{end} with {holes:?}");
        }
    }
    world.archive.put("a", b"");
    world.archive.state().holes.clear();
    let (bytes, holes, outcome) = salvage(&world, 0, None).await;
    outcome.unwrap();
    assert!(bytes.is_empty() && holes.is_empty());
}

/// Fails if a hole is believed that is empty, begins or ends within a group, or ends behind the file.
#[tokio::test]
async fn holes_that_do_not_fit_are_not_believed() {
    const SIZE: u64 = 200_000;
    let world = ServedArchive::new().await;
    let data = noise(200_000, 2);
    world.archive.put("a", &data);
    world.archive.state().holes = vec![hole(2 * G, SIZE, false)];
    for (first, is_good) in [
        (hole(2 * G, 3 * G, false), true),
        (hole(2 * G, 2 * G + 100, false), false),
        (hole(2 * G, 2 * G, false), false),
        (hole(2 * G, 14 * G, false), false),
        (hole(2 * G, u64::MAX, false), false),
        (hole(2 * G + 1, 3 * G, false), false),
    ] {
        // A client that believes the first hole has no reason to doubt the second.
        let rest = (first.end < SIZE).then(|| hole(first.end, SIZE, false));
        world.archive.state().claimed_holes = [first].into_iter().chain(rest).collect();
        let (bytes, holes, outcome) = salvage(&world, 0, None).await;
        if is_good {
            outcome.unwrap();
            assert_eq!(holes.len(), 2);
            continue;
        }
        let error = outcome.expect_err("a hole that does not fit");
        assert!(
            matches!(error, ClientError::Untrusted(_)),
            "{first:?}: {error}"
        );
        assert!(holes.is_empty(), "{first:?}: {holes:?}");
        assert!(bytes == data[..bytes.len()], "{first:?}");
    }
}
