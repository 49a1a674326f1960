//! Names of items in the attic, and the reading of rotten ones.
#![expect(clippy::disallowed_methods, reason = "tests make and damage files")]

use archive_model::VolumeId;

use super::*;

fn layout() -> (tempfile::TempDir, Layout) {
    let directory = crate::testing::directory();
    let layout = Layout::new(directory.path());
    layout.make_directories().unwrap();
    (directory, layout)
}

fn reason(name: &FileName, at: Timestamp, why: &str) -> AtticReason {
    AtticReason::of_leftover(name, at, &NodeId::new("n1").unwrap(), why)
}

fn items(layout: &Layout) -> Vec<LocalAtticItem> {
    let volume = VolumeId::new("v1").unwrap();
    let mut listed = list_items(layout, &volume).unwrap();
    listed.sort_unstable();
    listed
        .iter()
        .map(|listed| read_item(layout, listed))
        .collect()
}

/// Fails if two items share a directory, or an item loses its name or its reason.
#[test]
fn items_keep_names_and_reasons() {
    let (_directory, layout) = layout();
    let name = FileName::new("a.warc").unwrap();
    let target = layout.target_paths(&name);
    let reason = reason(&name, Timestamp::UNIX_EPOCH, "leftover");
    for number in 1..4 {
        std::fs::write(&target.sidecar, format!("old {number}")).unwrap();
        let place =
            put_aside(&layout, "u1", &reason, &[&target.sidecar, &target.outboard]).unwrap();
        let expected = match number {
            1 => "19700101T000000Z-u1".to_owned(),
            _ => format!("19700101T000000Z-u1-{number}"),
        };
        assert_eq!(place, layout.attic().join(expected), "no two have one name");
        assert_eq!(
            std::fs::read_to_string(place.join("a.warc.json")).unwrap(),
            format!("old {number}")
        );
        let kept: AtticReason =
            serde_json::from_slice(&std::fs::read(place.join("why.json")).unwrap()).unwrap();
        assert_eq!(
            (kept.why.as_str(), kept.kind),
            ("leftover", AtticItemKind::Leftover)
        );
    }
}

/// Fails if a file that is named `why.json` is overwritten by the reason.
#[test]
fn file_named_like_the_reason_is_kept() {
    let (_directory, layout) = layout();
    for file in ["why", "why.json"] {
        let name = FileName::new(file).unwrap();
        let target = layout.target_paths(&name);
        std::fs::write(&target.file, "data").unwrap();
        std::fs::write(&target.sidecar, "sidecar").unwrap();
        let reason = reason(&name, Timestamp::UNIX_EPOCH, "test");
        let place = put_aside(&layout, "u1", &reason, &[&target.file, &target.sidecar]).unwrap();
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 3, "{file}");
    }
    assert!(
        items(&layout)
            .iter()
            .all(|item| item.bytes == 11 && item.name.is_some())
    );
}

/// Fails if an item with a damaged reason is hidden, or ends the listing.
#[test]
fn damaged_items_are_listed_with_known_parts() {
    let (_directory, layout) = layout();
    let attic = layout.attic();
    let name = FileName::new("a").unwrap();
    let at = "2026-01-02T03:04:05Z".parse().unwrap();
    let cause = Cause::new("officer/o", "test").unwrap();
    let reason = AtticReason::new(AtticItemKind::Leftover, &name, at, &cause);
    let good = put_aside(&layout, "x", &reason, &[]).unwrap();
    let text = std::fs::read_to_string(good.join("why.json")).unwrap();
    std::fs::write(attic.join("20260102T030406Z-file"), "no directory").unwrap();
    for (place, why) in [
        ("20260102T030407Z-none", None),
        ("20260102T030408Z-cut", Some(&text[..20])),
        ("20260102T030409Z-empty", Some("")),
        (
            "20260102T030410Z-other",
            Some(r#"{"format":"holdfast-attic/9"}"#),
        ),
        ("99999999T999999Z-x", Some("[]")),
        ("my holiday\nphotos", Some(text.as_str())),
    ] {
        std::fs::create_dir(attic.join(place)).unwrap();
        std::fs::write(attic.join(place).join("data"), "12345").unwrap();
        if let Some(why) = why {
            std::fs::write(attic.join(place).join("why.json"), why).unwrap();
        }
    }
    // A reason that is too long, a reason that is a directory, a reason that is a link, and a tree.
    let huge = attic.join("20260102T030411Z-huge");
    std::fs::create_dir(&huge).unwrap();
    std::fs::write(huge.join("why.json"), vec![b' '; 3_000_000]).unwrap();
    let tree = attic.join("20260102T030412Z-tree");
    std::fs::create_dir_all(tree.join("why.json/deep/deeper")).unwrap();
    std::fs::write(tree.join("why.json/deep/deeper/x"), "123").unwrap();
    let link = attic.join("20260102T030413Z-link");
    std::fs::create_dir(&link).unwrap();
    std::os::unix::fs::symlink(good.join("why.json"), link.join("why.json")).unwrap();
    std::os::unix::fs::symlink("/etc", attic.join("20260102T030414Z-etc")).unwrap();

    let items = items(&layout);
    assert_eq!(items.len(), 12, "{items:#?}");
    let of = |id: &str| items.iter().find(|item| item.id.contains(id)).unwrap();
    assert_eq!(of("-x").who, "officer/o");
    assert_eq!(
        of("holiday").name,
        Some(name),
        "the reason is good, only the place is odd"
    );
    for id in [
        "-file", "-none", "-cut", "-empty", "-other", "-huge", "-tree", "-link", "-etc",
    ] {
        let item = of(id);
        assert!(item.name.is_none() && !item.why.is_empty(), "{item:?}");
        assert_eq!(item.at.strftime("%Y%m%dT%H%M").to_string(), "20260102T0304");
        assert!(item.damaged.is_some(), "{item:?}");
    }
    assert_eq!(
        (of("-none").bytes, of("-file").bytes, of("-tree").bytes),
        (5, 12, 3)
    );
    assert_eq!(of("-etc").bytes, 0, "never followed");
}

/// Fails if the id of an attic item can name a place outside the attic.
#[test]
fn hostile_ids_are_refused() {
    let long = "x".repeat(10_000);
    for id in [
        "", ".", "..", "../..", "a/b", "/etc", ".hidden", "-x", "a\nb", "a b", "ä", "a\0", &long,
    ] {
        assert!(AtticId::new(id).is_err(), "{id:?}");
    }
    assert!(AtticId::new("20260102T030405Z-u-1-2").is_ok());
}
