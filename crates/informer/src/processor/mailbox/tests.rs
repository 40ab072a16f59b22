use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::testing::{Thing, thing};

/// What a handler knows after a series of events, and whether the series made sense to it.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Told(BTreeMap<String, u64>);

impl Told {
    fn tell(&mut self, event: &Event<Thing>) {
        let key = event.key().to_string();
        let version = |thing: &Thing| thing.version.parse::<u64>().unwrap();
        match event {
            Event::Added { object, .. } => assert_eq!(self.0.insert(key, version(object)), None, "added twice"),
            Event::Updated { old, new } => {
                assert!(version(old) < version(new));
                assert_eq!(self.0.insert(key, version(new)), Some(version(old)), "old is what was told before");
            }
            Event::Resynced(object) => assert_eq!(self.0.get(&key), Some(&version(object)), "resync of what is known"),
            Event::Deleted(_) => assert!(self.0.remove(&key).is_some(), "deleted what was never told"),
        }
    }
}

/// Events as a store would announce them: what happens to a key depends on whether it is there.
fn announce(state: &mut BTreeMap<String, Arc<Thing>>, key: u8, step: u8, version: u64) -> Option<Event<Thing>> {
    let name = format!("web/{key}");
    let object = thing(&name, version);
    match (step, state.get(&name).cloned()) {
        (0..=5, known) => {
            state.insert(name, object.clone());
            Some(match known {
                Some(old) => Event::Updated { old, new: object },
                None => Event::Added { object, initial: false },
            })
        }
        (6 | 7, Some(_)) => {
            state.remove(&name);
            Some(Event::Deleted(Deleted::Final(object)))
        }
        (8, Some(known)) => Some(Event::Resynced(known)),
        _ => None,
    }
}

fn drain(mailbox: &Mailbox<Thing>, told: &mut Told, parcels: usize) {
    for _ in 0..parcels {
        let Some(parcel) = mailbox.state.lock().take() else { return };
        if let Parcel::Events(events) = parcel {
            events.iter().for_each(|event| told.tell(event));
        }
    }
}

proptest! {
    // Decision 12.
    #[test]
    fn however_slow_a_handler_is_what_it_is_told_makes_sense_and_ends_in_the_present(
        steps in prop::collection::vec((0u8..6, 0u8..10), 1..300),
        max_backlog in 0usize..20,
        pace in 1usize..30,
    ) {
        let mailbox = Mailbox::new(Delivery::every(max_backlog));
        let (mut state, mut told) = (BTreeMap::new(), Told::default());
        for (at, (key, step)) in steps.into_iter().enumerate() {
            let Some(event) = announce(&mut state, key, step, at as u64 + 1) else { continue };
            mailbox.push(&Arc::from([event]), 0, 0);
            // A deletion can be owed of what was told only, also if the object is there again.
            prop_assert!(mailbox.len() <= (max_backlog + 1).max(state.len() + told.0.len()), "{} wait", mailbox.len());
            if at % pace == 0 {
                drain(&mailbox, &mut told, 1);
            }
        }
        drain(&mailbox, &mut told, usize::MAX);
        let present: BTreeMap<String, u64> = state.into_iter().map(|(key, thing)| (key, thing.version.parse().unwrap())).collect();
        prop_assert_eq!(told.0, present);
    }
}

fn all(mailbox: &Mailbox<Thing>) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(parcel) = mailbox.state.lock().take() {
        match parcel {
            Parcel::Events(events) => found.extend(events.iter().map(|event| format!("{event:?}"))),
            Parcel::Synced => found.push("synced".to_owned()),
            Parcel::Replay(known) => found.push(format!("replay of {}", known.len())),
        }
    }
    found
}

fn folded(events: impl IntoIterator<Item = Event<Thing>>) -> Vec<String> {
    let mailbox = Mailbox::new(Delivery::Latest);
    events.into_iter().for_each(|event| mailbox.push(&Arc::from([event]), 0, 0));
    all(&mailbox)
}

fn added(version: u64, initial: bool) -> Event<Thing> {
    Event::Added { object: thing("a", version), initial }
}

fn updated(old: u64, new: u64) -> Event<Thing> {
    Event::Updated { old: thing("a", old), new: thing("a", new) }
}

fn deleted(version: u64) -> Event<Thing> {
    Event::Deleted(Deleted::Final(thing("a", version)))
}

#[test]
fn folding_follows_its_table() {
    assert_eq!(folded([added(1, true), updated(1, 2)]), ["Added(a@2, initial)"]);
    assert_eq!(folded([added(1, false), deleted(2)]), Vec::<String>::new());
    assert_eq!(folded([updated(1, 2), updated(2, 3)]), ["Updated(a@1 to 3)"]);
    assert_eq!(folded([updated(1, 2), deleted(3)]), ["Deleted(a@3, final)"]);
    assert_eq!(folded([deleted(1), added(2, false)]), ["Deleted(a@1, final)", "Added(a@2)"]);
    assert_eq!(folded([deleted(1), added(2, false), updated(2, 3)]), ["Deleted(a@1, final)", "Added(a@3)"]);
    assert_eq!(folded([deleted(1), added(2, false), deleted(3)]), ["Deleted(a@1, final)"]);
    assert_eq!(folded([updated(1, 2), Event::Resynced(thing("a", 2))]), ["Updated(a@1 to 2)"]);
    assert_eq!(folded([Event::Resynced(thing("a", 1)), updated(1, 2)]), ["Updated(a@1 to 2)"]);
    assert_eq!(folded([Event::Resynced(thing("a", 1)), Event::Resynced(thing("a", 1))]), ["Resynced(a@1)"]);
}

#[test]
fn a_mailbox_that_overflows_folds_once_and_counts_every_change_again_when_empty() {
    let mailbox = Mailbox::new(Delivery::every(2));
    for version in 1..=5 {
        mailbox.push(&Arc::from([updated(version, version + 1)]), 0, 0);
    }
    mailbox.push_synced();
    assert_eq!((mailbox.len(), mailbox.folds()), (1, 1), "a mark is no event");
    assert_eq!(all(&mailbox), ["Updated(a@1 to 6)", "synced"]);
    mailbox.push(&Arc::from([updated(6, 7)]), 0, 0);
    mailbox.push(&Arc::from([updated(7, 8)]), 0, 0);
    assert_eq!(all(&mailbox), ["Updated(a@6 to 7)", "Updated(a@7 to 8)"]);
    assert_eq!(mailbox.folds(), 1);
}
