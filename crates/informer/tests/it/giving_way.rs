//! A list of any size holds nobody up, and one that changes nothing takes no memory (hole 20).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream;
use kube_informer::parts::{ListEnd, ListOptions, ListStream, ListWatch, WatchOptions, WatchStream};
use kube_informer::{Id, KeyRef, Object, SharedInformer, SourceError};
use tokio::task::JoinSet;

use crate::script::{options, within};

const MANY: usize = 20_000;

/// How many there are, and were at most.
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

/// Lists the same many objects each time, made anew as they are read.
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
async fn others_run_while_a_long_list_is_applied_and_handlers_can_be_added() {
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
    assert!(turns.load(Ordering::Relaxed) > MANY / 256, "{turns:?} turns for others");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_of_what_is_known_already_holds_no_second_copy() {
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
    within("the end", informer.stop_within(Duration::from_secs(5))).await.unwrap();
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
    within("the indexes", others.join_next()).await.unwrap().unwrap();
    for number in 0..20 {
        let index = informer.store().index(&format!("by {number}")).unwrap();
        assert_eq!((index.values().len(), index.count("42")), (MANY, 1), "index {number}");
    }
    informer.stop().await;
}
