//! Jobs over files by their names.

use super::*;

/// Fails if a silent node makes a job partial that has read every file it names, or a name that nobody has read does not.
#[test]
fn job_by_names_is_done_when_each_was_read() {
    for (unread, ending) in [(0, Ending::Done), (1, Ending::Partial)] {
        let mut world = World::running();
        world.is_by_name = true;
        world.say(looked(&["a"], &["b"]));
        world.say(Event::Finished(vec![gap("b")]));
        world.say(compared(unread));
        world.say(Event::Reduced);
        assert_eq!(world.life.ending(), Some(ending));
        assert_eq!(world.life.gaps.len(), 1, "it is still told");
    }
}
