//! Registered handlers, and the tasks that deliver events to them.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use metrics::Histogram;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::handler::{AnyHandler, SharedHandler, Turn, call_batch_caught, call_caught, call_synced_caught};
use super::mailbox::{Delivery, Mailbox, Parcel, drop_in_pieces};
use super::{BatchReason, Event};
use crate::health::{HandlerHealth, HealthBoard, InformerError};
use crate::lock::Mutex;
use crate::object::Object;

/// How many events are delivered before other tasks may run: at least as many as a batch of watch events has.
const WITHOUT_YIELD: usize = 256;

tokio::task_local! {
    /// The caller of the callback that is running. With it, a handler does not wait for itself.
    static CURRENT: u64;
}

/// The number of the next caller: of a handler, or of handlers that share a state.
static NEXT_CALLER: AtomicU64 = AtomicU64::new(0);

/// Returns a number that no other handler has.
pub(crate) fn new_caller() -> u64 {
    NEXT_CALLER.fetch_add(1, Ordering::Relaxed)
}

/// Returns the caller of the callback that is running.
pub(super) fn current() -> Option<u64> {
    CURRENT.try_with(|id| *id).ok()
}

/// Runs a function as part of a handler's callback, on any thread.
pub(super) fn within<R>(id: Option<u64>, run: impl FnOnce() -> R) -> R {
    match id {
        Some(id) => CURRENT.sync_scope(id, run),
        None => run(),
    }
}

/// One registered handler of any form.
pub(crate) struct Listener {
    pub(crate) id: u64,
    /// The id, or the number of all handlers that share a state with this one.
    caller: AtomicU64,
    pub(crate) mailbox: Mailbox,
    pub(crate) resync: Mutex<Resync>,
    pub(super) status: Arc<ListenerStatus>,
    /// True once a task of the informer delivers. A stream has none: the program polls it.
    has_task: AtomicBool,
}

/// When a listener receives a resync.
#[derive(Debug, Default)]
pub(crate) struct Resync {
    pub(crate) requested: Option<Duration>,
    pub(crate) period: Option<Duration>,
    pub(crate) next: Option<Instant>,
}

/// The state of a listener that does not depend on the type of its objects.
#[derive(Debug)]
pub(super) struct ListenerStatus {
    pub(super) name: String,
    /// How many events were taken out of the mailbox and are not delivered yet.
    in_progress: AtomicUsize,
    pub(super) phase: watch::Sender<ListenerPhase>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenerPhase {
    /// Delivery has not started.
    New,
    Starting,
    Synced,
    Ended {
        synced: bool,
    },
}

impl ListenerPhase {
    pub(super) fn is_synced(self) -> bool {
        matches!(self, Self::Synced | Self::Ended { synced: true })
    }

    pub(super) fn is_ended(self) -> bool {
        matches!(self, Self::Ended { .. })
    }
}

impl ListenerStatus {
    fn ends(&self) {
        self.phase.send_modify(|phase| *phase = ListenerPhase::Ended { synced: phase.is_synced() });
    }

    pub(super) fn moves(&self, from: ListenerPhase, to: ListenerPhase) -> bool {
        self.phase.send_if_modified(|phase| {
            let moves = *phase == from;
            if moves {
                *phase = to;
            }
            moves
        })
    }

    pub(super) fn synced(&self) {
        self.moves(ListenerPhase::Starting, ListenerPhase::Synced);
    }

    pub(super) fn set_in_hand(&self, events: usize) {
        self.in_progress.store(events, Ordering::Relaxed);
    }
}

impl Listener {
    pub(crate) fn new(name: String, delivery: Delivery, resync: Option<Duration>) -> Self {
        let phase = watch::Sender::new(ListenerPhase::New);
        let status = Arc::new(ListenerStatus { name, in_progress: AtomicUsize::new(0), phase });
        let resync = Mutex::new(Resync { requested: resync, ..Resync::default() });
        // Unique among all informers, so that a callback can tell which informer it belongs to.
        let id = new_caller();
        let (caller, has_task) = (AtomicU64::new(id), AtomicBool::new(false));
        Self { id, caller, mailbox: Mailbox::new(delivery), resync, status, has_task }
    }

    pub(crate) fn name(&self) -> &str {
        &self.status.name
    }

    /// Returns true while a task of the informer delivers.
    pub(crate) fn has_task(&self) -> bool {
        self.has_task.load(Ordering::Relaxed)
    }

    /// Returns true inside a callback of this handler, or of one that shares its state.
    pub(super) fn is_running_here(&self) -> bool {
        current() == Some(self.caller.load(Ordering::Relaxed))
    }

    pub(crate) fn backlog(&self) -> usize {
        self.mailbox.len() + self.status.in_progress.load(Ordering::Relaxed)
    }

    pub(crate) fn health(&self) -> HandlerHealth {
        let backlog = self.backlog();
        HandlerHealth {
            name: self.name().to_owned(),
            backlog,
            // A stream that is not polled may have returned all its events.
            lag: if backlog == 0 { Duration::ZERO } else { self.mailbox.lag() },
            folds: self.mailbox.folds(),
            synced: self.status.phase.borrow().is_synced(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.status.phase.borrow().is_ended()
    }

    /// Marks a listener as ended that was added too late to run.
    pub(crate) fn never_runs(&self) {
        self.status.ends();
    }

    /// Marks the listener as starting. Returns false if it was removed before.
    pub(crate) fn starts(&self) -> bool {
        self.status.moves(ListenerPhase::New, ListenerPhase::Starting)
    }

    /// Delivers events until the mailbox is closed. Drops a call that awaits once the handler is given up.
    pub(crate) fn run(
        self: Arc<Self>,
        mut handler: AnyHandler,
        health: HealthBoard,
        given_up: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        // The guard also ends the listener if this future is dropped before it has run or halfway: a task that waits
        // for the end must not wait for ever. A call that blocks holds the guard, too, since nothing can stop such a
        // call.
        let ended = Arc::new(ListenerEndGuard(self.status.clone()));
        let caller = handler.group().unwrap_or(self.id);
        self.caller.store(caller, Ordering::Relaxed);
        async move {
            let _closes = ClosesOnDrop(&self.mailbox);
            self.has_task.store(true, Ordering::Relaxed);
            CURRENT.scope(caller, self.deliver_all(&mut handler, &health, &given_up, &ended)).await;
            drop(handler); // Before the end is announced: `remove` promises that the handler is dropped.
            drop(ended);
        }
    }

    async fn deliver_all(
        &self,
        handler: &mut AnyHandler,
        health: &HealthBoard,
        given_up: &CancellationToken,
        ended: &Arc<ListenerEndGuard>,
    ) {
        let latency = health.metrics().map(|metrics| metrics.handler_latency(&self.status.name));
        let latency = latency.as_ref();
        let (now, since_yield) = (Instant::now(), 0);
        let mut deliveries = Deliveries { listener: self, handler, health, given_up, ended, latency, now, since_yield };
        while let Some(parcel) = self.mailbox.next().await {
            deliveries.now = Instant::now();
            match parcel {
                Parcel::Synced => {
                    deliveries.synced().await;
                    self.status.synced();
                }
                parcel if deliveries.handler.takes_batches() => deliveries.deliver_batch(parcel).await,
                Parcel::Replay(known) => {
                    self.status.set_in_hand(known.len());
                    for object in known.objects() {
                        deliveries.deliver(Event::Added { object: object.clone(), initial: true }).await;
                    }
                }
                Parcel::Resync(known) => {
                    self.status.set_in_hand(known.len());
                    for object in known.objects() {
                        deliveries.deliver(Event::Resynced(object.clone())).await;
                    }
                }
                Parcel::Events(events, _) => {
                    self.status.set_in_hand(events.len());
                    for event in events.iter() {
                        deliveries.deliver(event.clone()).await;
                    }
                    drop_in_pieces(events).await;
                }
            }
            self.status.set_in_hand(0);
            deliveries.since_yield = 0;
            tokio::task::coop::consume_budget().await;
            crate::yield_point::maybe_yield().await;
        }
    }
}

/// Calls one handler with one event after another.
struct Deliveries<'l> {
    listener: &'l Listener,
    handler: &'l mut AnyHandler,
    health: &'l HealthBoard,
    given_up: &'l CancellationToken,
    ended: &'l Arc<ListenerEndGuard>,
    latency: Option<&'l Histogram>,
    /// When the next call begins: the time at which the call before ended. The clock is read once per event.
    now: Instant,
    /// How many events were delivered since other tasks could run.
    since_yield: usize,
}

impl Deliveries<'_> {
    async fn deliver(&mut self, event: Event<dyn Object>) {
        // Events that were discarded after their parcel was taken out must not be delivered.
        if self.listener.mailbox.is_discarded() {
            return;
        }
        let outcome = self.call(event).await;
        self.called(outcome);
        self.listener.status.in_progress.fetch_sub(1, Ordering::Relaxed);
        self.since_yield += 1;
        // A batch of watch events is delivered without a pause. A long list must let other tasks run.
        if self.since_yield >= WITHOUT_YIELD {
            self.since_yield = 0;
            tokio::task::yield_now().await;
            self.now = Instant::now();
        }
    }

    /// Delivers a parcel in one call. Live events that wait behind live events are delivered in the same call.
    async fn deliver_batch(&mut self, parcel: Parcel) {
        let mailbox = &self.listener.mailbox;
        let mut own_turn = None;
        // Further events may arrive during the wait for the turn. They belong to this batch.
        let turn: &mut dyn Turn = match &mut *self.handler {
            AnyHandler::Batch(handler) => handler,
            AnyHandler::Shared(handler) => match turn(&mut **handler, mailbox, self.given_up).await {
                Some(turn) => &mut **own_turn.insert(turn),
                None => return,
            },
            _ => return,
        };
        // Not more than wait now, so that the call begins although further events arrive.
        let (reason, mut more) = match &parcel {
            Parcel::Events(_, BatchReason::Live) => (BatchReason::Live, mailbox.len()),
            Parcel::Events(_, reason) => (*reason, 0),
            Parcel::Resync(_) => (BatchReason::Resync, 0),
            Parcel::Replay(_) | Parcel::Synced => (BatchReason::FirstList, 0),
        };
        let mut parcels = vec![parcel];
        while more > 0
            && let Some(events) = mailbox.next_live()
        {
            more = more.saturating_sub(events.len());
            parcels.push(Parcel::Events(events, reason));
        }
        self.listener.status.set_in_hand(parcels.iter().map(Parcel::len).sum());
        let batch = events_of(&parcels).await;
        self.now = Instant::now();
        if !mailbox.is_discarded() {
            let outcome = call_batch_caught(turn, batch, reason);
            drop(own_turn);
            self.called(outcome);
        }
        // The parcels hold the last references to old states.
        for parcel in parcels {
            if let Parcel::Events(events, _) = parcel {
                drop_in_pieces(events).await;
            }
        }
    }

    /// Notifies a handler that shares its state that all objects of the initial state are delivered.
    async fn synced(&mut self) {
        let AnyHandler::Shared(handler) = &mut *self.handler else { return };
        let mailbox = &self.listener.mailbox;
        let Some(mut turn) = turn(&mut **handler, mailbox, self.given_up).await else { return };
        self.now = Instant::now();
        if !mailbox.is_discarded() {
            let outcome = call_synced_caught(&mut *turn);
            drop(turn);
            self.called(outcome);
        }
    }

    /// Reports a panic of a call, and records how long the call took.
    fn called(&mut self, outcome: Result<(), String>) {
        if let Err(message) = outcome {
            let handler = self.listener.status.name.clone();
            self.health.report(&InformerError::HandlerPanicked { handler, message });
        }
        if let Some(latency) = self.latency {
            let began = std::mem::replace(&mut self.now, Instant::now());
            latency.record(self.now - began);
        }
    }

    async fn call(&mut self, event: Event<dyn Object>) -> Result<(), String> {
        if let AnyHandler::Sync(handler) = &mut *self.handler {
            return call_caught(handler, event);
        }
        let mut call = std::pin::pin!(self.handler.call(event, self.ended));
        let first = poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
        match first {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => {
                self.listener.mailbox.awaits();
                // Only a call that awaits can be given up. Nothing else here waits for long.
                self.given_up.run_until_cancelled(call).await.unwrap_or(Ok(()))
            }
        }
    }
}

/// Returns the events of some parcels, and lets other tasks run in between.
async fn events_of(parcels: &[Parcel]) -> Vec<Event<dyn Object>> {
    let mut events = Vec::with_capacity(parcels.iter().map(Parcel::len).sum());
    for parcel in parcels {
        if let Parcel::Events(more, _) = parcel {
            for piece in more.chunks(WITHOUT_YIELD) {
                events.extend_from_slice(piece);
                if piece.len() == WITHOUT_YIELD {
                    tokio::task::yield_now().await;
                }
            }
            continue;
        }
        for event in parcel.events() {
            events.push(event);
            if events.len().is_multiple_of(WITHOUT_YIELD) {
                tokio::task::yield_now().await;
            }
        }
    }
    events
}

/// Waits for the turn of a handler that shares its state. The applier does not wait meanwhile. Returns `None` if the
/// handler is given up.
async fn turn<'h>(
    handler: &'h mut dyn SharedHandler,
    mailbox: &Mailbox,
    given_up: &CancellationToken,
) -> Option<Box<dyn Turn + 'h>> {
    let mut turn = handler.turn();
    let first = poll_fn(|context| Poll::Ready(turn.as_mut().poll(context))).await;
    match first {
        Poll::Ready(turn) => Some(turn),
        Poll::Pending => {
            mailbox.awaits();
            given_up.run_until_cancelled(turn).await
        }
    }
}

/// Closes a mailbox when its task ends, also by a panic: the applier must not wait for a task that has ended.
struct ClosesOnDrop<'m>(&'m Mailbox);

impl Drop for ClosesOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close(false);
    }
}

/// Marks a listener as ended when the last copy is dropped.
pub(super) struct ListenerEndGuard(pub(super) Arc<ListenerStatus>);

impl Drop for ListenerEndGuard {
    fn drop(&mut self) {
        self.0.ends();
    }
}
