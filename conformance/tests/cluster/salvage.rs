//! Salvage of a file that no replica has whole.

use archive_model::{FileContent, FileName, GROUP_SIZE};
use archive_proof::decode_ranges;
use proto_archive::wire;
use proto_archive::wire::access_client::AccessClient;

use super::visits::{name, noise, root, store};
use super::world::{Cluster, NODES, flip, on_a_cluster};

const SIZE: usize = 64 * 16384 + 7;

/// Returns every byte that came, and the holes, of a salvage.
async fn salvage(cluster: &Cluster, name: &FileName, bytes: &[u8]) -> (u64, Vec<(u64, u64, bool)>) {
    let request = wire::GetRequest {
        name: name.to_string(),
        ..wire::GetRequest::default()
    };
    let mut access = AccessClient::new(cluster.channel("reader/anna"));
    let mut steps = access.salvage(request).await.unwrap().into_inner();
    let mut came = 0;
    let mut holes = Vec::new();
    while let Some(message) = steps.message().await.unwrap() {
        match message.step.unwrap() {
            wire::salvage_response::Step::Head(head) => assert_eq!(head.end, bytes.len() as u64),
            wire::salvage_response::Step::Hole(hole) => {
                holes.push((hole.start, hole.end, hole.unknown));
            }
            wire::salvage_response::Step::Segment(segment) => {
                let range = segment.offset..segment.offset + segment.length;
                let content = FileContent {
                    root: root(bytes),
                    size: bytes.len() as u64,
                };
                let taken =
                    decode_ranges(&segment.encoded[..], content, &[range], |offset, part| {
                        let at = usize::try_from(offset).unwrap();
                        assert!(part == &bytes[at..at + part.len()]);
                        Ok(())
                    });
                taken.unwrap();
                came += segment.length;
            }
        }
    }
    (came, holes)
}

/// Fails if a salvage leaves out a group that some copy has, or calls a group lost that a silent node may have.
#[test]
fn salvaged_bytes_come_with_map_of_losses() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(SIZE, 21);
        store(cluster, &name, &bytes).await.unwrap();
        let whole = bytes.len() as u64;
        assert_eq!(salvage(cluster, &name, &bytes).await, (whole, vec![]));
        for (one, two) in [(3, 3), (4, 4), (9, 9), (20, 21)] {
            flip(&cluster.copy("one", &name), one * GROUP_SIZE + 1);
            flip(&cluster.copy("two", &name), two * GROUP_SIZE + 2);
        }
        let group = |from: u64, to: u64, unknown| (from * GROUP_SIZE, to * GROUP_SIZE, unknown);
        let holes = vec![group(3, 5, false), group(9, 10, false)];
        let rest = whole - 3 * GROUP_SIZE;
        assert_eq!(salvage(cluster, &name, &bytes).await, (rest, holes));

        cluster.stop(NODES[1]).await;
        let holes: Vec<_> = [(3, 5), (9, 10), (20, 21)]
            .map(|(from, to)| group(from, to, true))
            .into();
        let rest = whole - 4 * GROUP_SIZE;
        assert_eq!(salvage(cluster, &name, &bytes).await, (rest, holes));
    });
}
