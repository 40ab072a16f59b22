//! The handlers of a simulation, in every form. They are added and removed at any time.

use std::collections::BTreeSet;
use std::time::Duration;

use kube_informer::{Delivery, HandlerHandle, RemoveMode};
use rand::RngExt as _;
use rand::seq::IndexedRandom as _;

use crate::log;
use crate::oracle::{Form, Listening, SharedWitness, Witness};
use crate::subject::Subject;
use crate::world::World;

/// A handler and its witness.
pub(crate) struct Member {
    pub(crate) witness: SharedWitness,
    /// How many events may wait for it, in addition to one for each object.
    max_backlog: usize,
    told: Told,
}

enum Told {
    Handler(HandlerHandle),
    Stream(Listening),
}

impl Member {
    pub(crate) fn name(&self) -> &str {
        match &self.told {
            Told::Handler(handle) => handle.name(),
            Told::Stream(stream) => stream.name(),
        }
    }

    /// Removes the handler.
    pub(crate) async fn remove(self, removal: RemoveMode) {
        match self.told {
            Told::Handler(handle) => handle.remove(removal).await.unwrap(),
            Told::Stream(stream) => stream.end().await,
        }
        self.witness.lock().unwrap().end();
    }
}

impl<T: Subject> World<T> {
    pub(crate) fn add_member(&mut self) {
        let number = self.witnesses.len();
        // Some handlers have the same name.
        let name = if self.random.random_bool(0.2) { "twin".to_owned() } else { format!("handler {number}") };
        let (delivery, max_backlog) = self.delivery();
        let form = match self.random.random_range(0..10) {
            0..3 if self.plan.blocking => Some(Form::Blocking),
            0 | 1 => None,
            _ => Some(*Form::WITHOUT_THREAD.choose(&mut self.random).unwrap()),
        };
        // The slowest handler takes eight seconds for all objects. A slower one could not keep up with resyncs.
        let slowest = 8000 / self.plan.keys as u64;
        let pace = self.random.random_bool(0.5).then(|| Duration::from_millis(self.random.random_range(1..slowest)));
        let pace = pace.filter(|_| form.is_none_or(Form::can_wait));
        log::note(|| format!("handler {number} is added: {form:?}, {delivery:?}, {pace:?}"));
        let mut witness = if form == Some(Form::Filtering) { Witness::only(Form::LABEL) } else { Witness::default() };
        witness.log = Some(Box::new(move |event| log::note(|| format!("handler {number} receives {event}"))));
        if self.restored {
            witness.versions_may_go_back();
        } else if !self.honest {
            witness.may_repeat();
        }
        let witness = SharedWitness::new(witness.into());
        let registration = self.informer.register().name(name).delivery(delivery);
        let told = match form {
            Some(form) => Told::Handler(form.register(registration, &witness, pace)),
            None => {
                let (stream, known) = (registration.events(), self.informer.store().len());
                assert_eq!(stream.backlog(), known, "every object waits in a new stream");
                Told::Stream(Listening::start(stream, witness.clone(), pace, true))
            }
        };
        self.witnesses.push(witness.clone());
        self.members.push(Member { witness, max_backlog, told });
    }

    /// Draws how events are delivered, and how many may then wait in addition to one for each object.
    fn delivery(&mut self) -> (Delivery, usize) {
        let max_backlog = self.random.random_range(0..20);
        let delivery = match self.random.random_range(0..6) {
            0 => return (Delivery::Latest, 0),
            1 | 2 => Delivery::every(max_backlog),
            3 => Delivery::Every { max_backlog, max_bytes: self.random.random_range(200..5000) },
            _ => return (Delivery::default(), 100_000),
        };
        (delivery, max_backlog)
    }

    pub(crate) async fn remove_member(&mut self) {
        if self.members.len() < 2 {
            return;
        }
        let at = self.random.random_range(0..self.members.len());
        let member = self.members.swap_remove(at);
        let removal = *[RemoveMode::Drain, RemoveMode::Discard].choose(&mut self.random).unwrap();
        log::note(|| format!("{} is removed, {removal:?}", member.name()));
        member.remove(removal).await;
    }

    /// Checks that no handler received a wrong event, and that no mailbox exceeds its bound.
    pub(crate) fn check_members(&self) {
        for (number, witness) in self.witnesses.iter().enumerate() {
            witness.lock().unwrap().check(&format!("handler {number}"));
        }
        let all = self.informer.health().handlers;
        let names: BTreeSet<&str> = all.iter().map(|handler| handler.name.as_str()).collect();
        assert_eq!(names.len(), self.members.len(), "handlers {all:?}");
        for member in &self.members {
            let handler = all.iter().find(|handler| handler.name == member.name()).expect("the handler is registered");
            // The backlog may have: one event for each object and the allowed events; one batch of any size; and the
            // events being processed, or a replay. In a folded mailbox, two events for each object replace all but the
            // last of these.
            let (waits, bound) = (handler.backlog, member.max_backlog + 3 * self.plan.keys);
            assert!(waits <= bound, "{waits} events wait for {}, at most {bound} may", handler.name);
            if handler.synced {
                member.witness.lock().unwrap().is_synced();
            }
        }
    }

    /// Returns the first difference between the events of a handler and the cache.
    pub(crate) fn members_differ(&self) -> Option<String> {
        let cache = self.informer.store().snapshot();
        self.members.iter().find_map(|member| {
            let difference = member.witness.lock().unwrap().difference(&cache)?;
            Some(format!("{} received other events: {difference}", member.name()))
        })
    }

    /// Returns how many changes all handlers received.
    pub(crate) fn changes(&self) -> u64 {
        self.witnesses.iter().map(|witness| witness.lock().unwrap().changes).sum()
    }
}
