//! Handlers in every form that the library supports. Each passes its events to a witness.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use kube_informer::{
    AsyncEventHandler, CancellationToken, Consumer, Deleted, Event, EventHandler, EventHandlerFuncs, EventStream,
    FilteringEventHandler, HandlerHandle, Object, Registration,
};
use tokio::task::JoinSet;

use super::SharedWitness;

/// The form of a handler. Streams are [`Listening`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Closure,
    Panicking,
    Async,
    AsyncPanicking,
    Blocking,
    Trait,
    AsyncTrait,
    Closures,
    Filtering,
    Consumer,
}

/// How long a handler takes for each event.
pub(crate) type Pace = Option<Duration>;

impl Form {
    /// All forms except the blocking one, which needs a thread.
    pub(crate) const WITHOUT_THREAD: [Self; 9] = [
        Self::Closure,
        Self::Panicking,
        Self::Async,
        Self::AsyncPanicking,
        Self::Trait,
        Self::AsyncTrait,
        Self::Closures,
        Self::Filtering,
        Self::Consumer,
    ];
    /// The label value whose objects the filtered form receives.
    pub(crate) const LABEL: &str = "1";

    /// Returns true if handlers of this form can take time for an event.
    pub(crate) fn can_wait(self) -> bool {
        matches!(self, Self::Async | Self::AsyncPanicking | Self::AsyncTrait)
    }

    /// Adds a handler of this form, which passes its events to the witness.
    pub(crate) fn register<T: Object>(
        self,
        registration: Registration<'_, T>,
        witness: &SharedWitness,
        pace: Pace,
    ) -> HandlerHandle {
        let mut told = Told { witness: witness.clone(), pace };
        match self {
            Self::Closure => registration.on_event(move |event| told.tell(&event)),
            Self::Panicking => {
                let mut count = 0;
                registration.on_event(move |event| {
                    told.tell(&event);
                    count += 1;
                    panic_every_seventh(count);
                })
            }
            Self::Async => registration.on_event_async(move |event| {
                told.tell(&event);
                rest(pace)
            }),
            Self::AsyncPanicking => {
                let mut count = 0;
                registration.on_event_async(move |event| {
                    told.tell(&event);
                    count += 1;
                    async move {
                        rest(pace).await;
                        panic_every_seventh(count);
                    }
                })
            }
            Self::Blocking => registration.on_event_blocking(move |event| told.tell(&event)),
            Self::Trait => registration.handler(told),
            Self::AsyncTrait => registration.async_handler(told),
            Self::Closures => {
                let again = || Told { witness: witness.clone(), pace };
                let (mut add, mut update, mut delete, mut resync) = (again(), again(), again(), again());
                let handlers = EventHandlerFuncs::new()
                    .on_add(move |object, initial| add.tell(&Event::Added { object, initial }))
                    .on_update(move |old, new| update.tell(&Event::Updated { old, new }))
                    .on_delete(move |gone| delete.tell(&Event::Deleted(gone)))
                    .on_resync(move |object| resync.tell(&Event::Resynced(object)));
                registration.handler(handlers)
            }
            Self::Filtering => registration
                .handler(FilteringEventHandler::new(|object: &T| object.label("l") == Some(Self::LABEL), told)),
            Self::Consumer => {
                let consumer = Consumer::new(told)
                    .on(registration, |told, events, _| events.iter().for_each(|event| told.tell(event)))
                    .on_synced(|told| told.witness.lock().unwrap().is_synced());
                consumer.start().into_handlers().remove(0)
            }
        }
    }
}

/// Panics without the panic hook, which would print each of the many panics.
fn panic_every_seventh(count: u64) {
    if count.is_multiple_of(7) {
        std::panic::resume_unwind(Box::new("handlers may panic"));
    }
}

async fn rest(pace: Pace) {
    if let Some(pause) = pace {
        tokio::time::sleep(pause).await;
    }
}

/// Passes events to a witness.
struct Told {
    witness: SharedWitness,
    pace: Pace,
}

impl Told {
    fn tell<T: Object>(&mut self, event: &Event<T>) {
        self.witness.lock().unwrap().tell(event);
    }
}

impl<T: Object> EventHandler<T> for Told {
    fn on_add(&mut self, object: Arc<T>, initial: bool) {
        self.tell(&Event::Added { object, initial });
    }

    fn on_update(&mut self, old: Arc<T>, new: Arc<T>) {
        self.tell(&Event::Updated { old, new });
    }

    fn on_delete(&mut self, gone: Deleted<T>) {
        self.tell(&Event::Deleted(gone));
    }

    fn on_resync(&mut self, object: Arc<T>) {
        self.tell(&Event::Resynced(object));
    }
}

impl<T: Object> AsyncEventHandler<T> for Told {
    async fn on_add(&mut self, object: Arc<T>, initial: bool) {
        self.tell(&Event::Added { object, initial });
        rest(self.pace).await;
    }

    async fn on_update(&mut self, old: Arc<T>, new: Arc<T>) {
        self.tell(&Event::Updated { old, new });
        rest(self.pace).await;
    }

    async fn on_delete(&mut self, gone: Deleted<T>) {
        self.tell(&Event::Deleted(gone));
        rest(self.pace).await;
    }

    async fn on_resync(&mut self, object: Arc<T>) {
        self.tell(&Event::Resynced(object));
        rest(self.pace).await;
    }
}

/// A task that reads a stream, and passes its events to a witness.
pub(crate) struct Listening {
    name: String,
    cancel: CancellationToken,
    task: JoinSet<()>,
}

impl Listening {
    /// Reads a stream to its end. If no other task runs meanwhile (`alone`), it also checks that the backlog is exact.
    pub(crate) fn start<T: Object>(stream: EventStream<T>, witness: SharedWitness, pace: Pace, alone: bool) -> Self {
        let (name, cancel, mut task) = (stream.name().to_owned(), CancellationToken::new(), JoinSet::new());
        let ended = cancel.clone();
        task.spawn(async move {
            ended.run_until_cancelled(listen(stream, witness, pace, alone)).await;
        });
        Self { name, cancel, task }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Drops the stream if it has not ended yet.
    pub(crate) async fn end(mut self) {
        self.cancel.cancel();
        while let Some(ended) = self.task.join_next().await {
            ended.unwrap();
        }
    }
}

async fn listen<T: Object>(mut stream: EventStream<T>, witness: SharedWitness, pace: Pace, alone: bool) {
    loop {
        let before = stream.backlog();
        let at_once = stream.next().now_or_never();
        let after = stream.backlog();
        let counted = match &at_once {
            // The backlog falls by more than one if waiting events were folded.
            Some(Some(_)) => after < before,
            Some(None) => true,
            None => after == 0,
        };
        if alone && !counted {
            let taken = matches!(at_once, Some(Some(_)));
            witness.lock().unwrap().complain(format!("{before} waited, then {after}; one was taken: {taken}"));
        }
        let next = match at_once {
            Some(next) => next,
            None => stream.next().await,
        };
        let Some(event) = next else { return };
        witness.lock().unwrap().tell(&event);
        rest(pace).await;
    }
}
