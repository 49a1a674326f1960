//! Which root is right: the admin data says; else a signed admission; else a vote; else nobody knows.
//!
//! Owns the rule of what decides about content. A vote is the last resort, for the day when neither the admin data nor
//! one valid signature is left, and it decides only by a majority of at least two re-hashed replicas.
//!
//! Not promised: that a ballot is honest. Pass only roots of bytes (for a checksum replica: of its record) read just
//! now.

use std::collections::BTreeMap;

use archive_model::{ReplicaId, Root};

/// The result of re-hashing one copy. A replica that could not be reached gives no ballot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ballot {
    /// The replica, of whichever kind.
    pub replica: ReplicaId,
    /// The root of its bytes.
    pub root: Root,
}

/// Everything that is known about the content of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The root in the admin data.
    pub admin: Option<Root>,
    /// The roots of admissions whose signatures are valid, from sidecars and receipts.
    pub admissions: Vec<Root>,
    /// The roots of the reachable copies.
    pub ballots: Vec<Ballot>,
}

/// The outcome of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootVerdict {
    /// The root is right, on this authority.
    Right(Root, RootAuthority),
    /// All reachable copies agree with each other, and not with the recorded root: nothing is done by itself.
    Disputed {
        /// The recorded root.
        recorded: Root,
        /// The root of the copies.
        copies: Root,
    },
    /// No authority and no majority: people must decide.
    Undecided(RootDoubt),
}

/// The authority on which a root is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootAuthority {
    /// The admin data.
    Admin,
    /// A valid signed admission.
    Admission,
    /// More than half of the replicas that reported.
    Vote,
}

/// The reason why nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootDoubt {
    /// Valid admissions contradict each other.
    Admissions,
    /// No two replicas agree.
    TooFew,
    /// No root has more than half.
    Tie,
}

/// Decides which root is right.
pub fn decide_root(evidence: &Evidence) -> RootVerdict {
    let votes = votes(&evidence.ballots);
    let admission = match evidence.admissions.split_first() {
        Some((first, others)) if others.iter().all(|other| other == first) => Some(*first),
        Some(_) if evidence.admin.is_none() => {
            return RootVerdict::Undecided(RootDoubt::Admissions);
        }
        Some(_) | None => None,
    };
    let admin = evidence.admin.map(|root| (root, RootAuthority::Admin));
    if let Some((recorded, authority)) =
        admin.or(admission.map(|root| (root, RootAuthority::Admission)))
    {
        let unanimous = votes.keys().next().filter(|_| votes.len() == 1);
        return match unanimous {
            Some(Some(copies)) if *copies != recorded => RootVerdict::Disputed {
                recorded,
                copies: *copies,
            },
            Some(_) | None => RootVerdict::Right(recorded, authority),
        };
    }
    let all: usize = votes.values().sum();
    let winner = votes
        .iter()
        .find_map(|(root, count)| root.filter(|_| *count > 1 && 2 * count > all));
    match winner {
        Some(root) => RootVerdict::Right(root, RootAuthority::Vote),
        None if votes
            .iter()
            .any(|(root, count)| root.is_some() && *count > 1) =>
        {
            RootVerdict::Undecided(RootDoubt::Tie)
        }
        None => RootVerdict::Undecided(RootDoubt::TooFew),
    }
}

/// Counts one vote for each replica. A replica that holds two contents votes for neither (`None`), and still counts as
/// one that reported.
fn votes(ballots: &[Ballot]) -> BTreeMap<Option<Root>, usize> {
    let mut voices: BTreeMap<&ReplicaId, Option<Root>> = BTreeMap::new();
    for ballot in ballots {
        let voice = voices.entry(&ballot.replica).or_insert(Some(ballot.root));
        *voice = voice.filter(|root| *root == ballot.root);
    }
    voices
        .into_values()
        .fold(BTreeMap::new(), |mut votes, voice| {
            *votes.entry(voice).or_default() += 1;
            votes
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(byte: u8) -> Root {
        Root::from_bytes([byte; 32])
    }

    /// Returns the ballots of the replicas: 0 stands for an unreachable one, 1–3 for that root, 4 for two contents at
    /// once.
    fn ballots(replicas: &[u8]) -> Vec<Ballot> {
        let mut ballots = Vec::new();
        for (index, said) in replicas.iter().enumerate() {
            let replica = ReplicaId::new(&format!("r-{index}")).unwrap();
            let roots: &[u8] = match said {
                0 => &[],
                4 => &[1, 2],
                byte => &[*byte],
            };
            ballots.extend(roots.iter().map(|byte| Ballot {
                replica: replica.clone(),
                root: root(*byte),
            }));
        }
        ballots
    }

    /// Every word that up to five replicas can say, under every authority: 5 × 3 906 cases against the rule, written
    /// down a second time in another way.
    ///
    /// Fails if a plurality wins, a tie is broken by order, one replica votes twice, a lone voice decides, an admission
    /// beats the admin data, or a vote is held although a record exists.
    #[test]
    fn every_ballot_of_up_to_five_replicas() {
        let mut cases = 0;
        for replicas in 0..=5_u32 {
            for code in 0..5_u32.pow(replicas) {
                let said = (0..replicas)
                    .map(|r| u8::try_from(code / 5_u32.pow(r) % 5).unwrap())
                    .collect::<Vec<_>>();
                for (admin, admissions) in [
                    (None, vec![]),
                    (Some(1), vec![]),
                    (Some(1), vec![2, 3]),
                    (None, vec![1, 1]),
                    (None, vec![1, 2]),
                ] {
                    let evidence = Evidence {
                        admin: admin.map(root),
                        admissions: admissions.iter().copied().map(root).collect(),
                        ballots: ballots(&said),
                    };
                    check(&evidence, &said);
                    cases += 1;
                }
            }
        }
        assert_eq!(cases, 5 * 3_906);
    }

    fn check(evidence: &Evidence, said: &[u8]) {
        let reporting = said.iter().filter(|said| **said != 0).collect::<Vec<_>>();
        let count = |byte: u8| {
            reporting
                .iter()
                .map(|said| usize::from(**said == byte))
                .sum::<usize>()
        };
        let all_say = |byte: u8| !reporting.is_empty() && count(byte) == reporting.len();
        let verdict = decide_root(evidence);
        let expected = if evidence.admin.is_none() && evidence.admissions == [root(1), root(2)] {
            RootVerdict::Undecided(RootDoubt::Admissions)
        } else if evidence.admin.is_some() || !evidence.admissions.is_empty() {
            match (2..=3).find(|byte| all_say(*byte)) {
                Some(copies) => RootVerdict::Disputed {
                    recorded: root(1),
                    copies: root(copies),
                },
                None if evidence.admin.is_some() => {
                    RootVerdict::Right(root(1), RootAuthority::Admin)
                }
                None => RootVerdict::Right(root(1), RootAuthority::Admission),
            }
        } else {
            match (1..=3)
                .find(|byte| count(*byte) >= 2 && count(*byte) > reporting.len() - count(*byte))
            {
                Some(byte) => RootVerdict::Right(root(byte), RootAuthority::Vote),
                None if (1..=3).any(|byte| count(byte) >= 2) => {
                    RootVerdict::Undecided(RootDoubt::Tie)
                }
                None => RootVerdict::Undecided(RootDoubt::TooFew),
            }
        };
        assert_eq!(verdict, expected, "{said:?} {evidence:?}");
        let mut reversed = evidence.clone();
        reversed.ballots.reverse();
        assert_eq!(
            decide_root(&reversed),
            verdict,
            "the order in which replicas report decides nothing: {said:?}"
        );
    }

    /// Fails if one replica makes a majority by reporting its content several times.
    #[test]
    fn a_repeated_ballot_is_one_voice() {
        let repeated = [ballots(&[2]), ballots(&[2]), ballots(&[2])].concat();
        let evidence = Evidence {
            ballots: repeated,
            ..Evidence::default()
        };
        assert_eq!(
            decide_root(&evidence),
            RootVerdict::Undecided(RootDoubt::TooFew)
        );
    }
}
