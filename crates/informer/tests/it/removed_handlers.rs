//! The informer waits for a running call of a removed handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube_informer::{Event, HandlerGuard, RemoveMode, SharedInformer};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::script::{Act::StayOpen, NoTaskLeft, Script, Thing, options, within};

fn informer() -> SharedInformer<Thing> {
    let script = Script::new().list("10", ["web/a@1", "web/b@2", "web/c@3", "web/d@4"]).watch([StayOpen]);
    SharedInformer::<Thing>::builder(script.may_end_early()).options(options()).build()
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_removed_its_own_handler_can_stop_the_informer() {
    let tasks = NoTaskLeft::since_now();
    let (informer, guard) = (informer(), Arc::new(Mutex::new(None::<HandlerGuard>)));
    let (stopped, mut stops) = mpsc::unbounded_channel();
    let (stopping, own) = (informer.clone(), guard.clone());
    let handle = informer.register().on_event_async(move |_: Event<Thing>| {
        let (stopping, own, stopped) = (stopping.clone(), own.lock().take(), stopped.clone());
        async move {
            drop(own);
            stopping.stop().await;
            stopped.send(()).unwrap();
        }
    });
    *guard.lock() = Some(handle.remove_on_drop());
    informer.start().unwrap();
    within("a stop that does not wait for itself", stops.recv()).await.unwrap();
    within("the informer to stop", informer.stop()).await;
    drop(informer);
    tasks.check();
}

#[tokio::test(start_paused = true)]
async fn stopping_does_not_wait_for_the_backlog_of_a_removed_handler() {
    let (informer, calls) = (informer(), Arc::new(AtomicUsize::new(0)));
    let (begun, mut begins) = mpsc::unbounded_channel();
    let counted = calls.clone();
    let slow = informer.register().name("slow").on_event_async(move |_: Event<Thing>| {
        counted.fetch_add(1, Ordering::Relaxed);
        begun.send(()).unwrap();
        tokio::time::sleep(Duration::from_secs(3600))
    });
    informer.start().unwrap();
    begins.recv().await.unwrap();
    let mut removal = std::pin::pin!(slow.remove(RemoveMode::Drain));
    assert!(futures_util::poll!(removal.as_mut()).is_pending());
    let error = informer.stop_within(Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(error.handlers, ["slow"], "its call has not returned");
    within("the removal", removal).await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 1, "a stopped informer calls no handler");
}
