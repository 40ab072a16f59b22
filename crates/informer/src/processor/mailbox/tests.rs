use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::object::Cached as _;
use crate::queue::Deleted;
use crate::store::{Store, StoreWriter};
use crate::testing::{Thing, thing};

/// Makes a batch of one event.
fn batch(event: Event<Thing>) -> EventBatch {
    Arc::new(vec![match event {
        Event::Added { object, initial } => Event::Added { object: Thing::erase(object), initial },
        Event::Updated { old, new } => Event::Updated { old: Thing::erase(old), new: Thing::erase(new) },
        Event::Resynced(object) => Event::Resynced(Thing::erase(object)),
        Event::Deleted(gone) => Event::Deleted(Deleted::Final(Thing::erase(gone.object().clone()))),
    }])
}

impl Mailbox {
    /// Puts in one event and folds all pending events, as the applier does for a handler that is stuck.
    fn put(&self, event: Event<Thing>) {
        self.push(&batch(event), BatchReason::Live, 0, 0, Instant::now());
        self.fold_all();
    }

    fn fold_all(&self) {
        while self.state.lock().fold(PIECE, &mut Dropped::default()) {}
    }

    fn take(&self) -> Option<Parcel> {
        self.state.lock().take()
    }
}

/// The objects that a handler knows after a series of events. It checks that each event fits the ones before.
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

/// Changes a key in the store, and returns the event: an addition, an update or a deletion, depending on whether the
/// store holds the key.
fn announce(writer: &mut StoreWriter<Thing>, key: u8, step: u8, version: u64) -> Option<Event<Thing>> {
    let name = format!("web/{key}");
    let object = thing(&name, version);
    match step {
        0..=5 => Some(match writer.put(object.clone()) {
            Some(old) => Event::Updated { old, new: object },
            None => Event::Added { object, initial: false },
        }),
        6 | 7 => writer.remove(&*name).map(|_| Event::Deleted(Deleted::Final(object))),
        _ => None,
    }
}

fn drain(mailbox: &Mailbox, told: &mut Told, parcels: usize) {
    for _ in 0..parcels {
        match mailbox.take() {
            None => return,
            Some(Parcel::Events(events, _)) => events.iter().for_each(|event| told.tell(&event.clone().typed())),
            Some(Parcel::Resync(known)) => {
                known.arcs().for_each(|object| told.tell(&Event::Resynced(Thing::typed(object))));
            }
            Some(Parcel::Replay(_) | Parcel::Synced) => {}
        }
    }
}

proptest! {
    // Decision 12.
    #[test]
    fn a_slow_handler_receives_a_consistent_history_that_ends_in_the_present(
        steps in prop::collection::vec((0u8..6, 0u8..10), 1..300),
        max_backlog in 0usize..20,
        pace in 1usize..30,
    ) {
        let mailbox = Mailbox::new(Delivery::every(max_backlog));
        let ((store, mut writer), mut told) = (Store::new(1), Told::default());
        for (at, (key, step)) in steps.into_iter().enumerate() {
            if step == 8 {
                mailbox.push_resync(store.cast().snapshot());
            }
            let Some(event) = announce(&mut writer, key, step, at as u64 + 1) else { continue };
            mailbox.put(event);
            // A pending deletion belongs to an object that the handler received, even if the object exists again. A
            // resync holds one entry for each object, and the events before it stay in front of it.
            let bound = (max_backlog + 1).max(store.len() + told.0.len());
            let resync = mailbox.state.lock().in_snapshots;
            let bound = if resync > 0 { bound + 2 * (max_backlog + 1) + resync } else { bound };
            prop_assert!(mailbox.len() <= bound, "{} wait, bound {bound}, resync {resync}", mailbox.len());
            if at % pace == 0 {
                drain(&mailbox, &mut told, 1);
            }
        }
        drain(&mailbox, &mut told, usize::MAX);
        let present: BTreeMap<String, u64> =
            store.iter().map(|thing| (format!("web/{}", thing.name), thing.version.parse().unwrap())).collect();
        prop_assert_eq!(told.0, present);
    }
}

fn all(mailbox: &Mailbox) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(parcel) = mailbox.take() {
        match parcel {
            Parcel::Events(events, _) => found.extend(events.iter().map(|event| format!("{event:?}"))),
            Parcel::Synced => found.push("synced".to_owned()),
            Parcel::Replay(known) => found.push(format!("replay of {}", known.len())),
            Parcel::Resync(known) => found.push(format!("resync of {}", known.len())),
        }
    }
    found
}

fn folded(events: impl IntoIterator<Item = Event<Thing>>) -> Vec<String> {
    let mailbox = Mailbox::new(Delivery::Latest);
    events.into_iter().for_each(|event| mailbox.put(event));
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
fn two_events_of_one_object_fold_as_the_table_says() {
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
fn an_overflowing_mailbox_folds_once_and_keeps_every_event_again_when_empty() {
    let mailbox = Mailbox::new(Delivery::every(2));
    for version in 1..=5 {
        mailbox.put(updated(version, version + 1));
    }
    mailbox.push_synced();
    mailbox.fold_all();
    assert_eq!((mailbox.len(), mailbox.folds()), (1, 1), "a mark is no event");
    assert_eq!(all(&mailbox), ["Updated(a@1 to 6)", "synced"]);
    mailbox.put(updated(6, 7));
    mailbox.put(updated(7, 8));
    assert_eq!(all(&mailbox), ["Updated(a@6 to 7)", "Updated(a@7 to 8)"]);
    assert_eq!(mailbox.folds(), 1);
}

#[test]
fn a_resync_keeps_its_position_and_is_not_delivered_twice() {
    let (store, mut writer) = Store::new(1);
    writer.put(thing("a", 2));
    let (mailbox, known) = (Mailbox::new(Delivery::every(100)), store.cast().snapshot());
    mailbox.put(updated(1, 2));
    assert!(mailbox.push_resync(known.clone()) && mailbox.push_resync(known.clone()));
    mailbox.put(updated(2, 3));
    assert_eq!(mailbox.len(), 3, "one that waits stands for both");
    assert_eq!(all(&mailbox), ["Updated(a@1 to 2)", "resync of 1", "Updated(a@2 to 3)"]);
    assert!(mailbox.push_resync(known));
    assert_eq!(all(&mailbox), ["resync of 1"]);
}

#[test]
fn a_folded_mailbox_catches_up_before_it_accepts_a_resync() {
    let (store, mut writer) = Store::new(1);
    writer.put(thing("a", 9));
    let mailbox = Mailbox::new(Delivery::every(0));
    (1..9).for_each(|version| mailbox.put(updated(version, version + 1)));
    assert!(!mailbox.push_resync(store.cast().snapshot()), "it stays due");
    assert_eq!(all(&mailbox), ["Updated(a@1 to 9)"]);
    assert!(mailbox.push_resync(store.cast().snapshot()));
}

#[test]
fn putting_a_batch_into_a_folded_mailbox_takes_constant_time() {
    let mailbox = Mailbox::new(Delivery::Latest);
    let events: Vec<_> = (0..1000).map(|at| batch(added(at, false)).first().cloned().expect("it has one")).collect();
    mailbox.push(&Arc::new(events), BatchReason::Live, 0, 0, Instant::now());
    assert_eq!(mailbox.state.lock().folded.as_ref().map(Folded::len), Some(0), "it is folded later");
    assert!(mailbox.state.lock().fold(PIECE, &mut Dropped::default()), "a piece at a time");
    assert_eq!(mailbox.len(), 1 + 1000 - PIECE);
}

/// An object that records whether its mailbox was locked when the object was freed.
struct Witness {
    version: &'static str,
    mailbox: Arc<Mailbox>,
    freed: Arc<Mutex<Vec<(&'static str, bool)>>>,
}

impl Object for Witness {
    fn id(&self) -> crate::object::Id<'_> {
        let key = crate::object::KeyRef::new("web", "a");
        crate::object::Id { key, uid: "", version: self.version }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let locked = self.mailbox.state.try_lock().is_none();
        self.freed.lock().push((self.version, locked));
    }
}

#[tokio::test]
async fn no_object_is_freed_while_its_mailbox_is_locked() {
    let mailbox = Arc::new(Mailbox::new(Delivery::Latest));
    let freed = Arc::new(Mutex::new(Vec::new()));
    let witness =
        |version| -> Arc<dyn Object> { Arc::new(Witness { version, mailbox: mailbox.clone(), freed: freed.clone() }) };
    let put = |event: Event<dyn Object>| mailbox.push(&Arc::new(vec![event]), BatchReason::Live, 0, 0, Instant::now());
    // The applier folds, for a handler that is stuck. Each parcel is folded before the next one arrives.
    let (one, two) = (witness("1"), witness("2"));
    put(Event::Added { object: one.clone(), initial: false });
    while mailbox.fold_piece().await {}
    put(Event::Updated { old: one, new: two });
    while mailbox.fold_piece().await {}
    put(Event::Deleted(Deleted::Final(witness("3"))));
    while mailbox.fold_piece().await {}
    assert_eq!(*freed.lock(), [("1", false), ("2", false), ("3", false)], "it came and went");
    // The delivering task folds.
    let (four, five, six) = (witness("4"), witness("5"), witness("6"));
    put(Event::Updated { old: four, new: five.clone() });
    put(Event::Updated { old: five, new: six });
    assert!(matches!(mailbox.next().await, Some(Parcel::Events(events, _)) if events.len() == 1));
    let freed = freed.lock();
    assert_eq!(freed.iter().filter(|(_, locked)| *locked).count(), 0, "{freed:?}");
    assert!(freed.contains(&("5", false)), "{freed:?}");
}

#[tokio::test]
async fn live_events_that_wait_are_taken_out_together_and_lists_are_not() {
    let mailbox = Mailbox::new(Delivery::default());
    let push = |version, reason| mailbox.push(&batch(added(version, false)), reason, 0, 0, Instant::now());
    (1..4).for_each(|version| push(version, BatchReason::Live));
    push(4, BatchReason::Relist);
    push(5, BatchReason::Live);
    assert!(matches!(mailbox.next().await, Some(Parcel::Events(_, BatchReason::Live))));
    assert_eq!([mailbox.next_live().is_some(), mailbox.next_live().is_some()], [true, true]);
    assert!(mailbox.next_live().is_none(), "the relist is a batch of its own");
    assert!(matches!(mailbox.next().await, Some(Parcel::Events(_, BatchReason::Relist))));
    assert!(mailbox.next_live().is_some() && mailbox.next_live().is_none());
    assert_eq!(mailbox.len(), 0);
}
