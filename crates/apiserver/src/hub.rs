//! Everything one server is made of, shared by its handles and its open watches.

pub(crate) mod clock;
pub(crate) mod journal;
pub(crate) mod pace;
pub(crate) mod admission;
pub(crate) mod compiled;

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::fault::Faults;
use crate::storage::state::{Locked, Storage};
use admission::Admit;
use clock::Clock;
use compiled::CompiledResources;
use journal::Journal;
use pace::Pace;

/// How much of an object its writer may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Trust {
    /// A client: status has a path of its own, and namespaces must exist.
    #[default]
    Client,
    /// The process the server lives in: it plays user, kubelet and controllers at once, and makes the namespaces it needs.
    Host,
}

/// The parts of one server.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) storage: Storage,
    pub(crate) chance: Chance,
    pub(crate) clock: Clock,
    pub(crate) faults: Faults,
    pub(crate) journal: Journal,
    pub(crate) settings: Settings,
    /// Held from when addresses and ports are given to a service until it is stored. No admission runs while it is held.
    pub(crate) giving: Mutex<()>,
    /// Definitions that are made ready before they are needed.
    pub(crate) compiled: CompiledResources,
    /// Namespaces that will be swept again, as something in them may not go yet.
    pub(crate) swept_again: Mutex<BTreeSet<String>>,
    /// How many watches are open.
    pub(crate) open_watches: AtomicUsize,
    /// The hub itself, for work that goes on after a request and must not keep the hub alive.
    pub(crate) me: Weak<Hub>,
    /// Such work. It ends with the hub.
    tasks: Mutex<JoinSet<()>>,
}

impl Hub {
    pub(crate) fn new(storage: Storage, chance: Chance, clock: Clock, faults: Faults, settings: Settings) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            storage,
            chance,
            clock,
            faults,
            journal: Journal::default(),
            settings,
            giving: Mutex::default(),
            compiled: CompiledResources::default(),
            swept_again: Mutex::default(),
            open_watches: AtomicUsize::new(0),
            me: me.clone(),
            tasks: Mutex::default(),
        })
    }

    /// Does what follows from a write: at once if the process itself wrote, else a moment later, if there is a runtime to wait in. It is
    /// done piece by piece: the state is unlocked as long as the work says that there is more.
    pub(crate) fn soon_in_pieces(
        &self,
        state: &mut Locked<'_>,
        trust: Trust,
        work: impl Fn(&Hub, &mut Locked<'_>) -> bool + Send + Sync + Clone + 'static,
    ) {
        let waits = trust == Trust::Client && self.later_in_pieces(self.settings.settle_delay, work.clone());
        if !waits {
            while work(self, state) {
                Locked::bump(state);
            }
        }
    }

    /// Does work after a while and piece by piece, if there is a runtime to wait in.
    pub(crate) fn later_in_pieces(
        &self,
        delay: Duration,
        work: impl Fn(&Hub, &mut Locked<'_>) -> bool + Send + Sync + 'static,
    ) -> bool {
        let owner = self.me.clone();
        let piece = move || owner.upgrade().is_some_and(|hub| work(&hub, &mut hub.storage.lock()));
        self.spawn(async move {
            tokio::time::sleep(delay).await;
            while piece() {
                tokio::task::yield_now().await;
            }
        })
    }

    /// Does work in the background, if there is a runtime to do it in.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
        let Ok(runtime) = Handle::try_current() else { return false };
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(work, &runtime);
        true
    }
}

/// What the builder decided.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The minor version of Kubernetes that the server shows.
    pub(crate) minor_version: u32,
    pub(crate) bookmark_interval: Duration,
    /// What clients must know.
    pub(crate) token: Option<String>,
    /// What those must know who control the server.
    pub(crate) admin_token: Option<String>,
    /// Whether watches can begin with initial events, as servers do since 1.34.
    pub(crate) streaming_lists: bool,
    /// A watch that is further behind is closed.
    pub(crate) max_watch_lag: Option<usize>,
    /// Whether watches with initial events may be compressed, as servers do since 1.37.
    pub(crate) compressed_watches: bool,
    /// How fast lists and initial events are sent; all at once if there is none.
    pub(crate) initial_pace: Option<Pace>,
    /// Whether objects go with their owners.
    pub(crate) garbage_collection: bool,
    /// What is asked before anything is written.
    pub(crate) admission: Vec<Admit>,
    /// How long after an answer the server does what follows from it: empties a namespace, opens a resource.
    pub(crate) settle_delay: Duration,
}
