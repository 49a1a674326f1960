//! Uploads that their depositors have left before the content was fixed.

use super::super::*;
use super::after;
use super::world::{ADMITTED, BARE, OTHER, Step, TestArchive, claim};

/// Fails if somebody resumes an upload that another depositor has left, or a name is held by asking for it and leaving.
#[test]
fn another_depositor_begins_an_abandoned_upload_anew() {
    for said in [BARE, claim(OTHER), claim(ADMITTED)] {
        let stranger = |world: &mut TestArchive| {
            let asked = world.ask(said.clone());
            let StoringEvent::Asked {
                requester,
                upload,
                claim,
                ..
            } = asked
            else {
                panic!("{asked:?}");
            };
            world.apply(StoringEvent::Asked {
                requester,
                upload,
                claim,
                resumes: false,
            });
            requester
        };
        let upload = |world: &TestArchive| world.state.record.upload.clone().unwrap();
        let mut world = after("BB", &[Step::AskBare, Step::SourceGone]);
        assert_eq!(upload(&world).id.as_str(), "up-1");
        let second = stranger(&mut world);
        let begun = upload(&world);
        assert_eq!((begun.id.as_str(), &begun.claim), ("up-2", &said));
        assert_eq!(world.state.source, Some(second));
        // A depositor that is still there is not disturbed.
        let mut world = after("BB", &[Step::AskBare]);
        stranger(&mut world);
        assert_eq!(upload(&world).id.as_str(), "up-1");
        assert_eq!(world.state.source, Some(Requester(1)));
        // What was admitted stays what it is.
        let steps = [Step::AskSame, Step::ReceivedSame, Step::SourceGone];
        let mut world = after("B", &steps);
        stranger(&mut world);
        assert_eq!(upload(&world).id.as_str(), "up-1");
    }
}
