//! Handlers that receive events of some objects only, alone and inside other handlers.

use std::sync::Arc;

use kube_informer::{Deleted, Event, EventHandler, FilteringEventHandler};
use parking_lot::Mutex;

use crate::script::{Thing, thing};

#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl EventHandler<Thing> for Notes {
    fn on_event(&mut self, event: Event<Thing>) {
        self.0.lock().push(format!("{event:?}"));
    }
}

/// Passes every event on to another handler, method by method.
struct Wrapper<H>(H);

impl<H: EventHandler<Thing>> EventHandler<Thing> for Wrapper<H> {
    fn on_add(&mut self, object: Arc<Thing>, initial: bool) {
        self.0.on_add(object, initial);
    }

    fn on_update(&mut self, old: Arc<Thing>, new: Arc<Thing>) {
        self.0.on_update(old, new);
    }

    fn on_delete(&mut self, gone: Deleted<Thing>) {
        self.0.on_delete(gone);
    }

    fn on_resync(&mut self, object: Arc<Thing>) {
        self.0.on_resync(object);
    }
}

fn red(text: &str) -> Arc<Thing> {
    Arc::new(thing(text).with(["red"]))
}

fn other(text: &str) -> Arc<Thing> {
    Arc::new(thing(text))
}

// Hole 13.
#[test]
fn a_filtered_handler_inside_another_handler_receives_the_right_events() {
    let notes = Notes::default();
    let mut handler = Wrapper(FilteringEventHandler::new(|thing: &Thing| thing.values == ["red"], notes.clone()));
    handler.on_event(Event::Added { object: red("web/a@1"), initial: true });
    handler.on_event(Event::Added { object: other("web/b@2"), initial: false });
    handler.on_event(Event::Updated { old: other("web/b@2"), new: red("web/b@3") });
    handler.on_event(Event::Updated { old: red("web/b@3"), new: red("web/b@4") });
    handler.on_event(Event::Resynced(red("web/b@4")));
    handler.on_event(Event::Deleted(Deleted::Final(red("web/b@5"))));
    handler.on_event(Event::Deleted(Deleted::Final(other("web/c@6"))));
    let expected = [
        "Added(web/a@1, initial)",
        "Added(web/b@3)",
        "Updated(web/b@3 to 4)",
        "Resynced(web/b@4)",
        "Deleted(web/b@5, final)",
    ];
    assert_eq!(*notes.0.lock(), expected);
}

#[test]
fn an_object_that_stops_matching_is_deleted_without_a_final_state() {
    let notes = Notes::default();
    let mut handler = FilteringEventHandler::new(|thing: &Thing| thing.values == ["red"], notes.clone());
    handler.on_event(Event::Added { object: red("web/a@1"), initial: true });
    handler.on_event(Event::Updated { old: red("web/a@1"), new: other("web/a@2") });
    assert_eq!(*notes.0.lock(), ["Added(web/a@1, initial)", "Deleted(web/a@1, last known)"]);
}

// A folded history leaves out that an object started or stopped matching.
#[test]
fn a_delete_is_passed_on_if_and_only_if_its_object_was_passed_on_before() {
    let notes = Notes::default();
    let mut handler = FilteringEventHandler::new(|thing: &Thing| thing.values == ["red"], notes.clone());
    handler.on_event(Event::Added { object: other("web/a@1"), initial: true });
    handler.on_event(Event::Deleted(Deleted::Final(red("web/a@3"))));
    assert_eq!(*notes.0.lock(), [""; 0], "its add was not passed on");
    handler.on_event(Event::Added { object: red("web/b@1"), initial: true });
    handler.on_event(Event::Deleted(Deleted::Final(other("web/b@3"))));
    assert_eq!(*notes.0.lock(), ["Added(web/b@1, initial)", "Deleted(web/b@3, final)"]);
}
