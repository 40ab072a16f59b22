//! `process` connects a queue to a function: failures are reported, and failed batches are put back on request.

use std::sync::Arc;

use kube_informer::Store;
use kube_informer::parts::{
    Batch, Changes, Delta, DeltaFifo, DeltaQueue, KeyDelta, OnError, OrderedQueue, Reflector, Work,
};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::script::{
    Act::StayOpen, NoTaskLeft, Script, Thing, describe_batch, modified, options, quiet, thing, within,
};

type Notes = Arc<Mutex<Vec<String>>>;

fn updated(text: &str) -> Delta<Thing> {
    Delta::Updated(Arc::new(thing(text)))
}

/// Returns the processed deltas and the reported errors. Each delta in `fails` fails once.
async fn process(
    queue: impl DeltaQueue<Thing>,
    deltas: &[&str],
    fails: &[&str],
    retry: bool,
) -> (Vec<String>, Vec<String>) {
    let no_task_left = NoTaskLeft::since_now();
    let (store, _writer) = Store::new(0);
    let (sink, mut changes) = Changes::with_sink(queue, store);
    for delta in deltas {
        sink.push(updated(delta), 0).await;
    }
    let (done, reported, cancel) = (Notes::default(), Notes::default(), CancellationToken::new());
    let mut fails: Vec<String> = fails.iter().map(|text| format!("updated {text}")).collect();
    let (note, report) = (done.clone(), reported.clone());
    let function = move |batch: Batch<Thing>| {
        let texts = describe_batch(&batch);
        match fails.iter().position(|fails| texts.contains(fails)) {
            Some(at) => Err(format!("cannot do {}", fails.remove(at)).into()),
            None => {
                note.lock().extend(texts);
                Ok(())
            }
        }
    };
    let report = Box::new(move |error: &(dyn std::error::Error + Send + Sync)| report.lock().push(error.to_string()));
    let on_error = if retry { OnError::Retry(report) } else { OnError::Report(report) };
    let (mut task, token) = (JoinSet::new(), cancel.clone());
    task.spawn(async move { changes.process(function, on_error, token).await });
    quiet().await;
    assert!(sink.is_empty());
    cancel.cancel();
    within("the end", task.join_next()).await.unwrap().unwrap();
    no_task_left.check();
    let (done, reported) = (done.lock().clone(), reported.lock().clone());
    (done, reported)
}

// Q-9 without a retry.
#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_and_the_following_batches_are_processed() {
    let (done, reported) = process(DeltaFifo::new(), &["web/a@1", "web/b@2"], &["web/a@1"], false).await;
    assert_eq!(done, ["updated web/b@2"]);
    assert_eq!(reported, ["cannot do updated web/a@1"]);
}

#[tokio::test(start_paused = true)]
async fn with_retry_a_failed_batch_is_put_back_and_processed_with_all_its_changes() {
    let deltas = ["web/a@1", "web/b@2", "web/a@3"];
    let (done, reported) = process(DeltaFifo::new(), &deltas, &["web/a@3"], true).await;
    assert_eq!(
        done,
        ["updated web/b@2", "updated web/a@1", "updated web/a@3"],
        "a batch is put back behind the waiting ones"
    );
    assert_eq!(reported, ["cannot do updated web/a@3"]);
    let (done, reported) = process(OrderedQueue::new(), &["web/a@1", "web/b@2"], &["web/b@2"], true).await;
    assert_eq!(done, ["updated web/a@1", "updated web/b@2"], "the ordered queue keeps its order");
    assert_eq!(reported.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_batch_is_not_put_back_over_newer_changes() {
    let (store, _writer) = Store::new(0);
    let (sink, mut changes) = Changes::with_sink(DeltaFifo::new(), store);
    sink.push(updated("web/a@1"), 0).await;
    let (done, cancel) = (Notes::default(), CancellationToken::new());
    let (note, mut first) = (done.clone(), true);
    let function = move |batch: Batch<Thing>| {
        if std::mem::take(&mut first) {
            // A newer change arrives while this one is being processed.
            let mut push = std::pin::pin!(sink.push(updated("web/a@2"), 0));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(push.as_mut().poll(&mut context).is_ready());
            return Err("not now".into());
        }
        note.lock().extend(describe_batch(&batch));
        Ok(())
    };
    let on_error = OnError::Retry(Box::new(|_| {}));
    tokio::join!(changes.process(function, on_error, cancel.clone()), async {
        quiet().await;
        cancel.cancel();
    });
    assert_eq!(*done.lock(), ["updated web/a@2"]);
}

#[tokio::test(start_paused = true)]
async fn a_reflector_a_queue_and_a_function_can_be_combined_without_an_informer() {
    let no_task_left = NoTaskLeft::since_now();
    let script = Script::new().list("10", ["web/a@1"]).watch([modified("web/a@11"), StayOpen]);
    let (store, mut writer) = Store::new(0);
    let (sink, mut changes) = Changes::with_sink(DeltaFifo::new().emit_replaced(true), store.clone());
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(Reflector::new(script.clone(), sink.clone(), &options()).run(cancel.clone()));
    let function = move |batch: Batch<Thing>| {
        let Work::Object(_, deltas) = batch.work else { return Ok(()) };
        for delta in deltas {
            if let KeyDelta::Replaced(object) | KeyDelta::Updated(object) = delta {
                writer.put(object);
            }
        }
        Ok(())
    };
    let token = cancel.clone();
    tasks.spawn(async move { changes.process(function, OnError::Report(Box::new(|_| {})), token).await });
    quiet().await;
    assert!(sink.has_synced());
    assert_eq!(store.get("web/a").as_deref(), Some(&thing("web/a@11")));
    cancel.cancel();
    while within("the end", tasks.join_next()).await.is_some() {}
    script.check_over();
    no_task_left.check();
}
