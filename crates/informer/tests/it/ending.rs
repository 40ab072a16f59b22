//! How an informer ends when user code ends it.

use std::sync::Arc;
use std::time::Duration;

use kube_informer::parts::{ListEnd, ListOptions, ListStream, ListWatchFns, WatchOptions, WatchStream};
use kube_informer::{InformerError, Phase, SharedInformer, WaitError};
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::script::{NoTaskLeft, Thing, quiet, thing};

fn source(panics: bool) -> impl kube_informer::parts::ListWatch<Thing> {
    ListWatchFns::new(
        move |_: ListOptions| async move {
            assert!(!panics, "the source is broken");
            Ok(ListStream::complete([thing("web/a@1")], ListEnd { version: Some("1".into()), ..ListEnd::default() }))
        },
        |_: WatchOptions| async { Ok(WatchStream::new(futures_util::stream::pending())) },
    )
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_ends_the_informer_and_is_reported_to_hooks_and_waiters() {
    let no_task_left = NoTaskLeft::since_now();
    let informer = SharedInformer::builder(source(true)).build();
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = errors.clone();
    informer.on_error(move |error| {
        if let InformerError::Panicked { .. } = error {
            heard.lock().push(error.to_string());
        }
    });
    let handle = informer.on_event(|_| {});
    informer.start().unwrap();
    assert!(informer.synced().within(Duration::from_secs(60)).await == Err(WaitError::Stopped("Thing".into())));
    assert!(!timeout(Duration::from_secs(60), handle.synced()).await.unwrap());
    assert_eq!(*errors.lock(), ["the reflector panicked, and the informer ends: the source is broken"]);
    assert!(informer.health().stopped);
    assert!(informer.health().parts.iter().all(|part| part.phase == Phase::Stopped));
    informer.stop().await;
    no_task_left.check();
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_stops_its_own_informer_does_not_wait_for_itself() {
    let no_task_left = NoTaskLeft::since_now();
    let informer = SharedInformer::builder(source(false)).build();
    let own = Arc::new(Mutex::new(Some(informer.clone())));
    let handle = informer.register().on_event_async(move |_| {
        let informer = own.lock().take();
        async move {
            if let Some(informer) = informer {
                informer.stop().await;
                informer.stop().await;
            }
        }
    });
    informer.start().unwrap();
    timeout(Duration::from_secs(60), handle.synced()).await.unwrap();
    assert!(informer.health().stopped);
    timeout(Duration::from_secs(60), informer.stop()).await.unwrap();
    quiet().await;
    no_task_left.check();
}
