//! Uses further connections if one has no room for more streams, or does not respond.
//!
//! An API server accepts a limited number of streams on one HTTP/2 connection, usually a hundred, and hyper's client
//! has one connection. Further requests wait until a stream ends. Watches seldom end, so these requests could wait for
//! ever.
//!
//! A dead connection is detected after 45 seconds. New requests do not wait for that: if a request on a connection has
//! had no response for two seconds, and no other request there received one since, new requests use another connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::lock::Mutex;

/// How many streams one connection carries. API servers accept a hundred or more, and may not know yet that a stream
/// has ended.
const STREAMS: usize = 80;
/// A request that waited this long, while no other request on the connection received a response, was never sent.
const UNSENT: Duration = Duration::from_secs(10);
/// After this time without a response a connection gets no new requests until it responds.
const SILENT: Duration = Duration::from_secs(2);
/// How many connections are made at most because others do not respond.
const MOST_FOR_SILENCE: usize = 4;
/// How long a lower stream limit is assumed: the API server may only have been slow.
const BELIEVED: Duration = Duration::from_secs(10 * 60);

/// Clients of the same API server. Each has one HTTP/2 connection, or as many HTTP/1 connections as streams.
pub(super) struct Lanes<C, M> {
    /// Makes one more client.
    make: M,
    /// As many clients as were ever needed at once. A client without streams closes its connection after some time, and
    /// then costs nothing.
    lanes: Mutex<Vec<Lane<C>>>,
}

struct Lane<C> {
    client: C,
    room: Arc<Room>,
}

/// The load of a connection. Each of its streams shares it.
struct Room {
    streams: AtomicUsize,
    /// How many of those streams have received a response.
    open: AtomicUsize,
    /// How many responses have arrived in total.
    answers: AtomicU64,
    /// The requests without a response, by number, with the time since when each waits. Each response resets these
    /// times, because the connection works.
    unanswered: Mutex<Unanswered>,
    /// The number of streams for which there is room, if it is less than [`STREAMS`], and since when that is known. An
    /// API server may accept fewer streams, and does not report its limit.
    learnt: Mutex<Option<(usize, Instant)>>,
}

#[derive(Default)]
struct Unanswered {
    next: u64,
    since: BTreeMap<u64, Instant>,
}

/// The place of one stream, which is free again when this is dropped.
pub(super) struct LaneSlot {
    room: Arc<Room>,
    since: Instant,
    /// How many responses had arrived when this place was taken; `None` once this request has a response.
    waiting: Option<u64>,
    /// The number of this request among those without a response.
    number: u64,
}

impl<C: Clone, M: Fn() -> C> Lanes<C, M> {
    pub(super) fn new(make: M) -> Self {
        Self { make, lanes: Mutex::default() }
    }

    /// Returns the first client that responds and has room for one more stream, so that the last ones become empty
    /// first.
    pub(super) fn enter(&self) -> (C, LaneSlot) {
        let mut lanes = self.lanes.lock();
        let mut with_room = lanes.iter().filter(|lane| lane.room.is_left());
        let first = with_room.clone().next();
        let answers = with_room.find(|lane| !lane.room.is_silent());
        // A server that does not respond at all must not receive more and more connections.
        if let Some(lane) = answers.or(first.filter(|_| lanes.len() >= MOST_FOR_SILENCE)) {
            return lane.enter();
        }
        let lane = Lane { client: (self.make)(), room: Arc::default() };
        let entered = lane.enter();
        lanes.push(lane);
        entered
    }
}

impl<C: Clone> Lane<C> {
    fn enter(&self) -> (C, LaneSlot) {
        // A lower stream limit only applies to the connection on which it was found.
        if self.room.streams.fetch_add(1, Ordering::Relaxed) == 0 {
            *self.room.learnt.lock() = None;
        }
        let waiting = Some(self.room.answers.load(Ordering::Relaxed));
        let (since, number) = (Instant::now(), self.room.wait());
        (self.client.clone(), LaneSlot { room: self.room.clone(), since, waiting, number })
    }
}

impl Default for Room {
    fn default() -> Self {
        let [streams, open] = [0, 0].map(AtomicUsize::new);
        Self { streams, open, answers: AtomicU64::new(0), unanswered: Mutex::default(), learnt: Mutex::default() }
    }
}

impl Room {
    fn is_left(&self) -> bool {
        let streams = self.streams.load(Ordering::Relaxed);
        streams == 0 || streams < self.limit()
    }

    /// Records a request without a response, and returns its number.
    fn wait(&self) -> u64 {
        let mut unanswered = self.unanswered.lock();
        let number = unanswered.next;
        unanswered.next += 1;
        unanswered.since.insert(number, Instant::now());
        number
    }

    /// Records that the connection has responded.
    fn works(&self) {
        let now = Instant::now();
        self.unanswered.lock().since.values_mut().for_each(|since| *since = now);
    }

    /// Returns true if a request has waited too long, and no other one received a response meanwhile.
    fn is_silent(&self) -> bool {
        self.unanswered.lock().since.values().any(|since| since.elapsed() >= SILENT)
    }

    fn limit(&self) -> usize {
        let learnt = self.learnt.lock().filter(|(_, since)| since.elapsed() < BELIEVED);
        learnt.map_or(STREAMS, |(limit, _)| limit)
    }
}

impl LaneSlot {
    /// Records that this request has a response: the stream is open.
    pub(super) fn answered(&mut self) {
        if self.waiting.take().is_some() {
            self.room.answers.fetch_add(1, Ordering::Relaxed);
            self.room.open.fetch_add(1, Ordering::Relaxed);
            self.room.unanswered.lock().since.remove(&self.number);
            self.room.works();
        }
    }

    /// Returns its argument. A body that calls this owns the place.
    pub(super) fn pass<T>(&self, passing: T) -> T {
        passing
    }
}

impl Drop for LaneSlot {
    fn drop(&mut self) {
        let room = &self.room;
        room.streams.fetch_sub(1, Ordering::Relaxed);
        room.unanswered.lock().since.remove(&self.number);
        let Some(answers) = self.waiting else {
            room.open.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        let open = room.open.load(Ordering::Relaxed);
        if open > 0 && self.since.elapsed() >= UNSENT && room.answers.load(Ordering::Relaxed) == answers {
            *room.learnt.lock() = Some((open.min(room.limit()), Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_filled_before_another_is_made_and_again_when_places_are_free() {
        let made = AtomicUsize::new(0);
        let lanes = Lanes::new(|| made.fetch_add(1, Ordering::Relaxed));
        let mut entered: Vec<_> = (0..STREAMS * 2 + 1).map(|_| lanes.enter()).collect();
        let clients: Vec<_> = entered.iter().map(|(client, _)| *client).collect();
        assert_eq!(clients, [vec![0; STREAMS], vec![1; STREAMS], vec![2]].concat());
        entered.drain(5..10);
        let again: Vec<_> = (0..6).map(|_| lanes.enter()).collect();
        assert_eq!(again.iter().map(|(client, _)| *client).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 2]);
        drop((entered, again));
        assert_eq!((lanes.enter().0, made.load(Ordering::Relaxed)), (0, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_gets_no_new_requests_until_it_responds() {
        let made = AtomicUsize::new(0);
        let lanes = Lanes::new(|| made.fetch_add(1, Ordering::Relaxed));
        let (_, mut watch) = lanes.enter();
        watch.answered();
        let (lane, mut renewal) = lanes.enter();
        assert_eq!((lane, lanes.enter().0), (0, 0), "it may still answer");
        tokio::time::advance(SILENT).await;
        let (second, mut read) = lanes.enter();
        assert_eq!(second, 1);
        read.answered();
        assert_eq!(lanes.enter().0, 1);
        renewal.answered();
        assert_eq!(lanes.enter().0, 0, "it has answered");
        // A request that was dropped does not count.
        drop((renewal, read));
        let (_, waits) = lanes.enter();
        tokio::time::advance(SILENT).await;
        drop(waits);
        assert_eq!(lanes.enter().0, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_responds_gets_a_bounded_number_of_connections() {
        let made = AtomicUsize::new(0);
        let lanes = Lanes::new(|| made.fetch_add(1, Ordering::Relaxed));
        let mut waiting = Vec::new();
        for _ in 0..100 {
            waiting.push(lanes.enter());
            tokio::time::advance(SILENT).await;
        }
        assert_eq!(made.load(Ordering::Relaxed), MOST_FOR_SILENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_response_reveals_a_lower_stream_limit() {
        let made = AtomicUsize::new(0);
        let lanes = Lanes::new(|| made.fetch_add(1, Ordering::Relaxed));
        let mut watches: Vec<_> = (0..50).map(|_| lanes.enter()).collect();
        watches.iter_mut().for_each(|(_, place)| place.answered());
        let (lane, starved) = lanes.enter();
        tokio::time::advance(UNSENT).await;
        drop(starved);
        assert_eq!((lane, lanes.enter().0), (0, 1), "there is no room for a 51st");
        watches.pop();
        assert_eq!(lanes.enter().0, 0, "but for a 50th");
        tokio::time::advance(BELIEVED).await;
        let more: Vec<_> = (0..2).map(|_| lanes.enter()).collect();
        assert_eq!(more.iter().map(|(lane, _)| *lane).collect::<Vec<_>>(), [0, 0], "it is tried again one day");
        drop(more);
        drop(watches);
        assert_eq!(
            (0..STREAMS).map(|_| lanes.enter()).map(|(lane, _)| lane).max(),
            Some(0),
            "a new connection begins anew"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_response_and_a_dropped_request_do_not_lower_the_stream_limit() {
        let lanes = Lanes::new(|| ());
        let (_, mut watch) = lanes.enter();
        watch.answered();
        drop(lanes.enter());
        let ((_, slow), (_, mut answered)) = (lanes.enter(), lanes.enter());
        tokio::time::advance(UNSENT).await;
        answered.answered();
        drop(slow);
        assert_eq!(watch.room.limit(), STREAMS);
    }
}
