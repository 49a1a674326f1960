//! Names and ids that were made to break something.

use super::*;

/// Fails if an id with a path in it reaches the disk.
#[tokio::test]
async fn hostile_ids_are_refused_before_any_path() {
    let test = TestDoor::with_two().await;
    let long = "x".repeat(10_000);
    let hostile = [
        "../..",
        "",
        &long,
        "a\nb",
        "a/b",
        "/etc/passwd",
        "..",
        ".",
        "a\0b",
    ];
    for bad in hostile {
        let good = wire::AtticRef {
            volume: "v1".to_owned(),
            id: "20260101T000000Z-x".to_owned(),
            who: "officer/o".to_owned(),
            why: "x".to_owned(),
            checksum: Vec::new().into(),
        };
        let bad = bad.to_owned();
        let bad_id = wire::AtticRef {
            id: bad.clone(),
            ..good.clone()
        };
        let bad_volume = wire::AtticRef {
            volume: bad.clone(),
            ..good.clone()
        };
        for (request, named) in [(bad_id, "id"), (bad_volume, "volume")] {
            let refused = test
                .door
                .restore_item(Request::new(request.clone()))
                .await
                .unwrap_err();
            assert_eq!(field(&refused), named, "{bad:?}");
            let refused = test.door.purge(Request::new(request)).await.unwrap_err();
            assert_eq!(field(&refused), named, "{bad:?}");
        }
        for (request, named) in [
            (
                wire::PutAsideRequest {
                    name: bad.clone(),
                    ..TestDoor::removal("v1", "a", b"")
                },
                "name",
            ),
            (
                wire::PutAsideRequest {
                    volume: bad.clone(),
                    ..TestDoor::removal("v1", "a", b"")
                },
                "volume",
            ),
            (
                wire::PutAsideRequest {
                    checksum: bad.clone().into(),
                    ..TestDoor::removal("v1", "a", b"")
                },
                "checksum",
            ),
        ] {
            let refused = test
                .door
                .put_aside(Request::new(request))
                .await
                .unwrap_err();
            assert_eq!(field(&refused), named, "{bad:?}");
        }
        let adoption = wire::AdoptRequest {
            name: bad.clone(),
            volume: "v1".to_owned(),
            admission: "{}".to_owned(),
        };
        assert_eq!(
            field(&test.door.adopt(Request::new(adoption)).await.unwrap_err()),
            "name"
        );
        for order in [
            Order::Clear,
            Order::Drain,
            Order::ReadOnly,
            Order::ReadWrite,
            Order::Retire,
        ] {
            assert_eq!(
                field(&test.order(order, &bad, "").await.unwrap_err()),
                "volume",
                "{bad:?}"
            );
        }
        if bad.is_empty() {
            continue;
        }
        assert_eq!(
            field(&test.order(Order::Init, &bad, "/x").await.unwrap_err()),
            "volume"
        );
        assert_eq!(
            field(&test.order(Order::Adopt, &bad, "/x").await.unwrap_err()),
            "volume"
        );
        let request = wire::AtticRequest { name: bad.clone() };
        let refused = test.door.attic(Request::new(request)).await.err().unwrap();
        assert_eq!(field(&refused), "name");
    }
    for path in [
        "",
        "relative",
        "../..",
        "/a/../b",
        "/a\nb",
        "/a\0b",
        &format!("/{long}"),
    ] {
        for order in [Order::Init, Order::Adopt] {
            assert_eq!(
                field(&test.order(order, "v3", path).await.unwrap_err()),
                "path",
                "{path:?}"
            );
        }
    }
    assert_eq!(
        field(&test.order(Order::Unspecified, "v1", "").await.unwrap_err()),
        "order"
    );
    // A node is retired by two persons, and never by this order.
    for mode in [
        wire::Mode::Unspecified.into(),
        wire::Mode::Retired.into(),
        9,
    ] {
        let request = Request::new(wire::SetModeRequest { mode });
        let refused = test.door.set_mode(request).await.unwrap_err();
        assert_eq!(field(&refused), "mode", "{mode}");
    }
    for (who, why, named) in [("", "x", "who"), ("x", "", "why"), ("a\nb", "x", "who")] {
        let request = wire::PutAsideRequest {
            who: who.to_owned(),
            why: why.to_owned(),
            ..TestDoor::removal("v1", "a", b"")
        };
        assert_eq!(
            field(
                &test
                    .door
                    .put_aside(Request::new(request))
                    .await
                    .unwrap_err()
            ),
            named
        );
    }
}
