//! The random setup of a simulated cluster: its server, the options of its informer, and its size.

use std::time::Duration;

use kube_embedded_apiserver::ApiServer;
use kube_informer::{InformerOptions, QueueOrder, Selection};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::json;

use crate::lingering::LINGERS;
use crate::log;
use crate::subject::Form;

pub(crate) const NAMESPACES: [&str; 3] = ["a", "a-b", "b"];

/// The longest time of a list or an initial stream. Every time limit of the simulation includes it.
const LONGEST_LIST: Duration = Duration::from_secs(30);

pub(crate) struct Plan {
    /// The seed for the places where tasks yield. `None`: they do not yield.
    pub(crate) yields: Option<u64>,
    /// The representation of objects.
    pub(crate) form: Form,
    /// True if handlers may block. They run on threads of their own, so a seed does not repeat exactly.
    pub(crate) blocking: bool,
    /// True if writes to other collections of the server occur.
    pub(crate) busy: bool,
    pub(crate) server: ApiServer,
    /// The maximum number of objects at one time.
    pub(crate) keys: usize,
    /// The namespaces that the informer follows. Empty: all.
    pub(crate) namespaces: Vec<&'static str>,
    /// The value of the label `l` that the informer selects.
    pub(crate) label: Option<&'static str>,
    pub(crate) options: InformerOptions,
    /// True if deleted objects linger.
    pub(crate) lingers: bool,
    pub(crate) page_size: Option<usize>,
    pub(crate) resync_period: Option<Duration>,
    /// The share of possible faults that occur. Some defects show only if no later fault hides them.
    pub(crate) trouble: f64,
    /// The share of writes that are undecodable.
    pub(crate) unreadable: f64,
}

impl Plan {
    pub(crate) fn draw(seed: u64, random: &mut StdRng) -> Self {
        let blocking = random.random_bool(0.05);
        let yields = (!blocking && random.random_bool(0.7)).then_some(seed);
        let form = *[Form::Whole, Form::Whole, Form::View, Form::Compact].choose(random).unwrap();
        let busy = random.random_bool(0.8);
        let keys = random.random_range(12..120);
        let server = server(seed, keys, random);
        let namespaces = match random.random_range(0..4) {
            0 => vec!["a"],
            1 => vec!["a", "b"],
            _ => vec![],
        };
        let label = if random.random_bool(0.3) { Some("1") } else { None };
        let page_size = random.random_bool(0.4).then(|| random.random_range(1..20));
        let resync_period = random.random_bool(0.3).then(|| Duration::from_secs(random.random_range(20..400)));
        let options = options(seed, page_size, resync_period, random);
        let unreadable = if random.random_bool(0.15) { 0.1 } else { 0.01 };
        let trouble = if random.random_bool(0.2) { 0.05 } else { 1.0 };
        Self {
            yields,
            form,
            blocking,
            busy,
            server,
            keys,
            namespaces,
            label,
            options,
            lingers: lingers(seed),
            page_size,
            resync_period,
            trouble,
            unreadable,
        }
    }

    /// Returns the selection of namespaces for all informers.
    pub(crate) fn selection(&self) -> Selection {
        Selection::new().namespaces(&self.namespaces).unwrap()
    }
}

fn lingers(seed: u64) -> bool {
    seed.is_multiple_of(3)
}

/// Returns a slow server with a short history.
fn server(seed: u64, keys: usize, random: &mut StdRng) -> ApiServer {
    // An old server sends few or no bookmarks, and does not stream.
    let old = random.random_bool(0.1);
    let bookmarks = if old && random.random_bool(0.7) { 100_000 } else { random.random_range(1..60) };
    let mut server = ApiServer::builder()
        .seed(seed)
        .bookmark_interval(Duration::from_secs(bookmarks))
        .history(random.random_range(5..200));
    if random.random_bool(0.1) {
        server = server.history_bytes(random.random_range(2_000..50_000));
    }
    if random.random_bool(0.1) {
        server = server.max_watch_lag(random.random_range(1..50));
    }
    if old {
        server = server.streaming_lists(false);
    }
    if random.random_bool(0.5) {
        let objects = random.random_range(1..20);
        let pause = Duration::from_millis(random.random_range(10..3000));
        // Sixteen objects in 30 seconds count as progress. With fewer, the server counts as stalled.
        let (progress, longest) = (Duration::from_millis(1500) * objects, LONGEST_LIST * objects / keys as u32);
        server = server.initial_pace(objects as usize, pause.min(progress).min(longest));
    }
    log::plan(format!("{server:?}, {keys} keys"));
    let server = server.build();
    for namespace in NAMESPACES {
        server.create("namespaces", None, json!({"metadata": {"name": namespace}})).unwrap();
    }
    server
}

/// Draws limits that are small compared to the number of objects.
fn options(
    seed: u64,
    page_size: Option<usize>,
    resync_period: Option<Duration>,
    random: &mut StdRng,
) -> InformerOptions {
    let order = if random.random_bool(0.5) { QueueOrder::PerObject } else { QueueOrder::Ordered };
    let mut options = InformerOptions::new().seed(seed).queue_order(order);
    if lingers(seed) {
        options = options.linger(LINGERS);
    }
    if let Some(period) = resync_period {
        options = options.resync_period(period);
    }
    if random.random_bool(0.2) {
        options = options.relist_period(Duration::from_secs(random.random_range(60..2000)));
    }
    if random.random_bool(0.3) {
        options = options.streaming(false);
    }
    if random.random_bool(0.3) {
        options = options.queue_bytes(random.random_range(1..2000));
    }
    if let Some(page_size) = page_size {
        options = options.page_size(page_size);
    }
    options
}
