//! The salvage of a file that is good nowhere: every good byte, and exactly the holes.

use archive_client::{Access, ClientError, FileRange, Hole, Salvaged};
use archive_model::FileName;
use proto_archive::wire::salvage_response::Hole as WireHole;
use testing::noise;

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
        ..FileRange::whole(FileName::new("a").unwrap())
    };
    let (mut bytes, mut holes) = (Vec::new(), Vec::new());
    let reader = world.reader();
    let mut salvage = match reader.salvage(&wanted).await {
        Ok(salvage) => salvage,
        Err(error) => return (bytes, holes, Err(error)),
    };
    loop {
        match salvage.next().await {
            Ok(Some(Salvaged::Bytes(more))) => bytes.extend_from_slice(&more),
            Ok(Some(Salvaged::Hole(hole))) => {
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

/// Fails if a hole that begins or ends within a group is believed.
#[tokio::test]
async fn holes_that_do_not_fit_are_not_believed() {
    let world = ServedArchive::new().await;
    world.archive.put("a", &noise(200_000, 2));
    for wrong in [
        hole(2 * G, 2 * G + 100, false),
        hole(2 * G, 2 * G, false),
        hole(2 * G, u64::MAX, false),
        hole(2 * G + 1, 3 * G, false),
    ] {
        world.archive.state().holes = vec![wrong];
        let (_, holes, outcome) = salvage(&world, 0, None).await;
        let is_cut = wrong.end == u64::MAX;
        match outcome {
            // The test's archive cuts a hole at the end of the range, and leaves out an empty one.
            Ok(()) => assert!(is_cut || wrong.start == wrong.end, "{wrong:?}: {holes:?}"),
            Err(error) => assert!(matches!(error, ClientError::Untrusted(_)), "{error}"),
        }
    }
}
