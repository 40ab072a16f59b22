//! A long list does not block other tasks, and a relist without changes needs no memory for a second copy (hole 20).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream;
use kube_informer::parts::{ListEnd, ListOptions, ListStream, ListWatch, WatchOptions, WatchStream};
use kube_informer::{Id, KeyRef, Object, SharedInformer, SourceError};
use tokio::task::JoinSet;

use crate::script::{options, within};

const MANY: usize = 20_000;

/// The number of objects that exist now, and the highest number so far.
#[derive(Default)]
struct Census {
    alive: AtomicUsize,
    most: AtomicUsize,
}

struct Counted {
    name: String,
    version: String,
    census: Arc<Census>,
}

impl Counted {
    fn new(number: usize, version: usize, census: &Arc<Census>) -> Self {
        let alive = census.alive.fetch_add(1, Ordering::Relaxed) + 1;
        census.most.fetch_max(alive, Ordering::Relaxed);
        Self { name: number.to_string(), version: version.to_string(), census: census.clone() }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.census.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Object for Counted {
    fn id(&self) -> Id<'_> {
        Id { key: KeyRef::new("web", &self.name), uid: "", version: &self.version }
    }
}

/// Lists the same objects each time, and creates them while they are read.
struct Many(Arc<Census>);

impl ListWatch<Counted> for Many {
    async fn list(&self, _: ListOptions) -> Result<ListStream<Counted>, SourceError> {
        use kube_informer::parts::{Decoded, ListPart};
        let census = self.0.clone();
        let items =
            (0..MANY).map(move |number| ListPart::Item(Decoded::Object(Counted::new(number, number + 1, &census))));
        let end = ListEnd { version: Some((MANY + 1).to_string().into()), ..ListEnd::default() };
        Ok(ListStream::new(stream::iter(items.chain([ListPart::End(end)]).map(Ok))))
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream<Counted>, SourceError> {
        Ok(WatchStream::new(stream::pending()))
    }

    fn supports_streaming_lists(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn other_tasks_run_and_handlers_can_be_added_while_a_long_list_is_applied() {
    let informer = SharedInformer::builder(Many(Arc::default())).options(options()).build();
    informer.start().unwrap();
    let (turns, mut others) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
    let (counts, adds) = (turns.clone(), informer.clone());
    others.spawn(async move {
        while !adds.health().is_ready() {
            adds.on_event(|_| {});
            counts.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    within("the list", informer.synced()).await.unwrap();
    assert!(turns.load(Ordering::Relaxed) > MANY / 256, "{turns:?} turns for other tasks");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_without_changes_holds_no_second_copy() {
    let census = Arc::<Census>::default();
    let informer = SharedInformer::builder(Many(census.clone())).options(options()).build();
    informer.start().unwrap();
    within("the list", informer.synced()).await.unwrap();
    let kept = informer.store().get("web/7").unwrap();
    within("the relist", informer.relist()).await.unwrap();
    let most = census.most.load(Ordering::Relaxed);
    assert!(most <= MANY + 2, "{most} objects at once");
    assert!(Arc::ptr_eq(&kept, &informer.store().get("web/7").unwrap()));
    drop(kept);
    within("the informer to stop", informer.stop_within(Duration::from_secs(5))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_index_added_while_a_list_is_applied_holds_all_of_it() {
    let informer = SharedInformer::builder(Many(Arc::default())).options(options()).build();
    informer.start().unwrap();
    let adds = informer.clone();
    let mut others = JoinSet::new();
    others.spawn(async move {
        for number in 0..20 {
            adds.add_index_with(&format!("by {number}"), |object: &Counted, add| add(&object.name)).unwrap();
            for _ in 0..7 {
                tokio::task::yield_now().await;
            }
        }
    });
    within("the list", informer.synced()).await.unwrap();
    within("the indexes to be added", others.join_next()).await.unwrap().unwrap();
    for number in 0..20 {
        let index = informer.store().index(&format!("by {number}")).unwrap();
        assert_eq!((index.values().len(), index.count("42")), (MANY, 1), "index {number}");
    }
    informer.stop().await;
}
