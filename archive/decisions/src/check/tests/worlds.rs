//! All small worlds: three names, the expectation and the listing of each, silence or a cut anywhere.

use super::*;

/// The most things that may be expected of a name, and the most that may be listed.
const EXPECTED: u32 = 6;
const LISTED: u32 = 5;

/// Returns the admin data's expectation of a name, and the copies that the replica has of it.
fn sides(code: u32) -> (Option<ExpectedCopy>, &'static [(u8, &'static str)]) {
    let expected = [
        None,
        Some(present(Some("one"))),
        Some(present(None)),
        Some(ExpectedCopy::InFlight {
            root: Some(root(1)),
        }),
        Some(ExpectedCopy::Withdrawn),
        Some(ExpectedCopy::Incomplete {
            root: root(1),
            size: 10,
        }),
    ];
    let copies: [&[(u8, &str)]; 5] = [
        &[],
        &[(1, "one")],
        &[(1, "two")],
        &[(2, "one")],
        &[(1, "one"), (2, "three"), (1, "two")],
    ];
    // Listed in the order of places: one, three, two.
    (
        expected[usize::try_from(code % EXPECTED).unwrap()].clone(),
        copies[usize::try_from(code / EXPECTED).unwrap()],
    )
}

/// Returns the findings for one name when the whole replica was heard.
fn findings(file: &str, expected: Option<&ExpectedCopy>, copies: &[(u8, &str)]) -> Vec<Finding> {
    let kinds = match (expected, copies) {
        (None | Some(ExpectedCopy::Withdrawn), []) => vec![],
        (None | Some(ExpectedCopy::Withdrawn), _) => vec![AnomalyKind::Unexpected],
        (Some(ExpectedCopy::Present { .. }), []) => vec![AnomalyKind::Missing],
        (Some(ExpectedCopy::Incomplete { .. }), []) => vec![AnomalyKind::Incomplete],
        (Some(expected), copies) => {
            let mut kinds = vec![];
            if copies.iter().any(|(byte, _)| *byte == 2) {
                kinds.push(AnomalyKind::Conflicting(root(2)));
            }
            if matches!(expected, ExpectedCopy::InFlight { .. }) {
                kinds.push(AnomalyKind::Transient);
            } else if copies.len() == 3 {
                kinds.push(AnomalyKind::Duplicate(vec![node("one"), node("two")]));
            }
            kinds
        }
    };
    let mut findings = kinds
        .into_iter()
        .map(|kind| anomaly(file, kind))
        .collect::<Vec<_>>();
    let known = match expected {
        Some(ExpectedCopy::Present { place, .. }) => Some(place.clone()),
        Some(ExpectedCopy::Incomplete { .. }) => Some(None),
        Some(ExpectedCopy::InFlight { .. } | ExpectedCopy::Withdrawn) | None => None,
    };
    if let Some(known) = known
        && let Some((_, at)) = copies.iter().find(|(byte, _)| *byte == 1)
        && known
            .as_ref()
            .is_none_or(|known| !copies.contains(&(1, known.node.as_str())))
    {
        findings.push(Finding::Moved {
            file: name(file),
            place: place(at),
        });
    }
    findings
}

/// Fails if a file is called missing while a node is silent or the stream is cut, a report of that calls itself
/// complete, a finding is lost or invented, or an entry shifts the join.
#[test]
fn every_small_world_whole_silent_or_cut_anywhere() {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let mut worlds = 0_u64;
    let of_a_name = EXPECTED * LISTED;
    for code in 0..of_a_name.pow(3) {
        let sides = [0, 1, 2].map(|i| sides(code / of_a_name.pow(i) % of_a_name));
        let entries = NAMES
            .iter()
            .zip(&sides)
            .filter_map(|(file, (expected, _))| Some((*file, expected.clone()?)));
        let entries = entries.collect::<Vec<_>>();
        let listing = NAMES.iter().zip(&sides).flat_map(|(file, (_, copies))| {
            copies
                .iter()
                .map(|(byte, at)| Ok(listed(file, *byte, at)))
                .collect::<Vec<_>>()
        });
        let listing = listing.collect::<Source<_>>();
        let whole = NAMES
            .iter()
            .zip(&sides)
            .flat_map(|(file, (expected, copies))| findings(file, expected.as_ref(), copies));
        let whole = whole.collect::<Vec<_>>();

        let ended = [listing.clone(), vec![Ok(ListingItem::End)]].concat();
        let (findings, report) = run(admin(&entries), ended.clone());
        assert_eq!(findings, whole, "{entries:?} {listing:?}");
        assert!(report.is_complete());
        assert_eq!(report.names, entries.len() as u64);
        worlds += 1;

        for at in 0..=listing.len() {
            // A node falls silent there: what is listed is judged as before, what is absent after it is not missing.
            let mut hushed = ended.clone();
            hushed.insert(at, Ok(silent("four")));
            let (findings, report) = run(admin(&entries), hushed);
            let doubted = whole
                .iter()
                .map(|finding| doubt(finding, &listing[..at], |_| Some(unverified_by_four())));
            assert_eq!(
                findings,
                doubted.flatten().collect::<Vec<_>>(),
                "silent at {at}: {entries:?} {listing:?}"
            );
            assert!(!report.is_complete());

            // The stream breaks there, with or without a word: nothing after it is missing, and nothing is unexpected.
            for broken in [
                vec![],
                vec![Err("reset".to_owned())],
                vec![Ok(listed("A", 1, "one"))],
            ] {
                if at == 0 && broken.first().is_some_and(Result::is_ok) {
                    continue;
                }
                let cut = [listing[..at].to_vec(), broken].concat();
                let (findings, report) = run(admin(&entries), cut);
                assert!(
                    !report.is_complete() && report.cuts.len() == 1,
                    "cut at {at}: {report:?}"
                );
                for finding in &findings {
                    let Finding::Anomaly {
                        file,
                        kind: AnomalyKind::Missing | AnomalyKind::Incomplete,
                    } = finding
                    else {
                        continue;
                    };
                    let heard = listing[..at]
                        .iter()
                        .any(|l| matches!(l, Ok(ListingItem::Entry(e)) if e.name >= *file));
                    assert!(heard, "cut at {at}: {finding:?} {listing:?}");
                }
                let expected = entries.iter().filter(|(_, e)| is_present(e)).count();
                let judged = findings.iter().map(|finding| match finding {
                    Finding::Anomaly { file, .. } | Finding::Moved { file, .. } => file,
                });
                let judged = judged.filter(|file| {
                    entries
                        .iter()
                        .any(|(entry, e)| *entry == file.as_str() && is_present(e))
                });
                let judged = judged.collect::<BTreeSet<_>>().len() as u64;
                assert!(
                    judged + report.intact + report.unplaced >= expected as u64,
                    "nothing is passed over: {report:?}"
                );
                worlds += 1;
            }
            worlds += 1;
        }
    }
    println!("{worlds} checks");
}

/// Whether a copy is to be there.
const fn is_present(expected: &ExpectedCopy) -> bool {
    matches!(
        expected,
        ExpectedCopy::Present { .. } | ExpectedCopy::Incomplete { .. }
    )
}

fn unverified_by_four() -> AnomalyKind {
    AnomalyKind::Unverified {
        node: node("four"),
        volume: None,
    }
}

/// Returns the finding as it is if the listing was heard only up to `heard`.
fn doubt(
    finding: &Finding,
    heard: &[Result<ListingItem, String>],
    blame: impl Fn(&FileName) -> Option<AnomalyKind>,
) -> Option<Finding> {
    match finding {
        Finding::Anomaly {
            file,
            kind: kind @ (AnomalyKind::Missing | AnomalyKind::Incomplete),
        } => {
            let was_heard = heard
                .iter()
                .any(|item| matches!(item, Ok(ListingItem::Entry(entry)) if entry.name >= *file));
            let kind = if was_heard {
                Some(kind.clone())
            } else {
                blame(file)
            };
            kind.map(|kind| Finding::Anomaly {
                file: file.clone(),
                kind,
            })
        }
        Finding::Anomaly { .. } | Finding::Moved { .. } => Some(finding.clone()),
    }
}
