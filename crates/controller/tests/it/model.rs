//! A queue behaves like a model of plain lists, for random calls in a random order.

use std::time::Duration;

use kube_controller::{DelayingQueue, Item, Priority};
use proptest::prelude::*;
use tokio::time::Instant;

use crate::{at_once, ms};

#[derive(Debug, Clone)]
enum Act {
    Add(u8, i32),
    AddAfter(u8, i32, u64),
    Get,
    /// Drops the item with this index among the items that workers have.
    Done(usize),
    Retry(usize, u64),
    Pass(u64),
    ShutDown,
}

fn act() -> impl Strategy<Value = Act> {
    let (item, priority, delay) = (0..8_u8, -2..3_i32, 0..50_u64);
    prop_oneof![
        6 => (item.clone(), priority.clone()).prop_map(|(item, priority)| Act::Add(item, priority)),
        3 => (item, priority, delay.clone()).prop_map(|(item, priority, delay)| Act::AddAfter(item, priority, delay)),
        6 => Just(Act::Get),
        4 => (0..8_usize).prop_map(Act::Done),
        2 => (0..8_usize, delay.clone()).prop_map(|(index, delay)| Act::Retry(index, delay)),
        3 => delay.prop_map(Act::Pass),
    ]
}

/// Makes random calls, with at most one shutdown at a random place.
fn acts() -> impl Strategy<Value = Vec<Act>> {
    (prop::collection::vec(act(), 0..150), prop::option::weighted(0.3, any::<prop::sample::Index>())).prop_map(
        |(mut acts, end)| {
            if let Some(end) = end {
                acts.insert(end.index(acts.len() + 1), Act::ShutDown);
            }
            acts
        },
    )
}

/// The model of a queue: plain lists, each searched from beginning to end.
#[derive(Default)]
struct Model {
    /// Items that wait, with their priority, the oldest first.
    waiting: Vec<(u8, i32)>,
    /// Items that workers have, with their priority, and with the priority with which they were added again.
    held: Vec<(u8, i32, Option<i32>)>,
    /// Delayed items, with their priority and due time, in the order of arrival.
    delayed: Vec<(u8, i32, u64)>,
    now: u64,
    taken: u32,
    closed: bool,
}

impl Model {
    fn add(&mut self, item: u8, priority: i32) {
        if let Some((_, _, again)) = self.held.iter_mut().find(|(held, ..)| *held == item) {
            *again = Some(again.map_or(priority, |known| known.max(priority)));
        } else if let Some((_, known)) = self.waiting.iter_mut().find(|(waiting, _)| *waiting == item) {
            *known = priority.max(*known);
        } else {
            self.waiting.push((item, priority));
        }
    }

    fn add_after(&mut self, item: u8, priority: i32, delay: u64) {
        let at = self.now + delay;
        if delay == 0 && !self.closed {
            return self.add(item, priority);
        }
        match self.delayed.iter().position(|(delayed, ..)| *delayed == item) {
            None => self.delayed.push((item, priority, at)),
            Some(index) => {
                self.delayed[index].1 = self.delayed[index].1.max(priority);
                if at < self.delayed[index].2 {
                    let (item, priority, _) = self.delayed.remove(index);
                    self.delayed.push((item, priority, at));
                }
            }
        }
    }

    fn get(&mut self) -> Option<(u8, i32)> {
        // The oldest item of the highest priority, or at every tenth call the oldest of all.
        let highest = self.waiting.iter().map(|(_, priority)| *priority).max()?;
        let oldest = (self.taken + 1).is_multiple_of(10);
        let index = self.waiting.iter().position(|(_, priority)| oldest || *priority == highest)?;
        let (item, priority) = self.waiting.remove(index);
        self.taken += 1;
        self.held.push((item, priority, None));
        Some((item, priority))
    }

    fn done(&mut self, index: usize) {
        if let (item, _, Some(priority)) = self.held.remove(index) {
            self.waiting.push((item, priority));
        }
    }

    fn pass(&mut self, time: u64) {
        self.now += time;
        if self.closed {
            return;
        }
        self.delayed.sort_by_key(|(_, _, at)| *at);
        let due = self.delayed.iter().take_while(|(_, _, at)| *at <= self.now).count();
        for (item, priority, _) in self.delayed.drain(..due).collect::<Vec<_>>() {
            self.add(item, priority);
        }
    }

    fn left(&mut self) -> Vec<u8> {
        self.delayed.sort_by_key(|(_, _, at)| *at);
        self.delayed.drain(..).map(|(item, ..)| item).collect()
    }
}

struct Run {
    queue: DelayingQueue<u8>,
    held: Vec<Item<u8, DelayingQueue<u8>>>,
    model: Model,
}

impl Run {
    async fn step(&mut self, act: Act) {
        let Self { queue, held, model } = self;
        match act {
            Act::Add(item, priority) => {
                assert_eq!(queue.add_with(item, Priority(priority)), !model.closed);
                if !model.closed {
                    model.add(item, priority);
                }
            }
            Act::AddAfter(item, priority, delay) => {
                assert_eq!(queue.add_after_with(item, ms(delay), Priority(priority)), !model.closed);
                if !model.closed {
                    model.add_after(item, priority, delay);
                }
            }
            Act::Get => {
                let got = at_once(queue.get()).await;
                let end = model.closed && model.waiting.is_empty();
                let end = end && model.held.iter().all(|(.., again)| again.is_none());
                assert_eq!(matches!(got, Some(None)), end, "{got:?}");
                let got = got.flatten();
                assert_eq!(got.as_ref().map(|item| (**item, item.priority().0)), model.get());
                held.extend(got);
            }
            Act::Done(index) if index < held.len() => {
                drop(held.remove(index));
                model.done(index);
            }
            Act::Retry(index, delay) if index < held.len() => {
                held.remove(index).retry_after(ms(delay));
                let (item, priority, _) = model.held[index];
                model.add_after(item, priority, delay);
                model.done(index);
            }
            Act::Pass(time) => {
                tokio::time::advance(ms(time)).await;
                model.pass(time);
            }
            Act::ShutDown => {
                model.closed = true;
                assert_eq!(queue.shut_down(), model.left());
            }
            Act::Done(_) | Act::Retry(..) => {}
        }
        let status = queue.status();
        assert_eq!(queue.len(), model.waiting.len());
        assert_eq!(status.processing, model.held.len());
        assert_eq!(status.delayed, model.delayed.len());
        let mut keys: Vec<u8> = held.iter().map(|item| **item).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), held.len(), "two workers have the same item");
    }

    /// Lets workers finish, and checks that no item is lost and no item is left.
    async fn drain(mut self) {
        let queue = self.queue.clone();
        let mut drain = Box::pin(queue.drain());
        loop {
            let drained = at_once(&mut drain).await;
            self.model.closed = true;
            if let Some(left) = drained {
                assert!(self.model.waiting.is_empty() && self.model.held.is_empty(), "it ended too soon");
                assert_eq!(left, self.model.left());
                return;
            }
            let nothing_waits = self.model.waiting.is_empty();
            assert!(!nothing_waits || !self.model.held.is_empty(), "it did not end");
            self.step(if nothing_waits { Act::Done(0) } else { Act::Get }).await;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_queue_behaves_like_a_model_of_plain_lists(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut run = Run { queue: DelayingQueue::new(), held: Vec::new(), model: Model::default() };
            let start = Instant::now();
            for act in acts {
                run.step(act).await;
            }
            assert_eq!(start.elapsed(), Duration::from_millis(run.model.now));
            run.drain().await;
        });
    }
}
