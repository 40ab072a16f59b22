//! The shared parts of one server, for its handles and its open watches.

pub(crate) mod clock;
pub(crate) mod journal;
pub(crate) mod pace;
pub(crate) mod access;
pub(crate) mod admission;
pub(crate) mod endpoint;
#[cfg(feature = "tls")]
pub(crate) mod trust;
pub(crate) mod compiled;
pub(crate) mod tokens;

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
use access::Access;
use admission::Admit;
use clock::Clock;
use compiled::CompiledResources;
use endpoint::Endpoint;
use journal::Journal;
use pace::PauseRate;
use tokens::IssuedTokens;

/// How much of an object a write may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Trust {
    /// A client: status is a subresource, and namespaces must exist.
    #[default]
    Client,
    /// The process that runs the server: it acts as user, kubelet and controllers, and creates missing namespaces.
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
    pub(crate) settings: HubSettings,
    /// Locked from the allocation of a service's addresses and ports until the service is stored. No admission runs
    /// while it is locked.
    pub(crate) giving: Mutex<()>,
    /// CRDs that were compiled before they are needed.
    pub(crate) compiled: CompiledResources,
    /// Namespaces with a scheduled repeated sweep, because some of their objects could not be deleted.
    pub(crate) swept_again: Mutex<BTreeSet<String>>,
    /// The tokens of service accounts.
    pub(crate) tokens: IssuedTokens,
    /// The number of open watches.
    pub(crate) open_watches: AtomicUsize,
    /// The hub itself, for background work that must not keep the hub alive.
    pub(crate) me: Weak<Hub>,
    /// The tasks of background work. They end with the hub.
    tasks: Mutex<JoinSet<()>>,
}

impl Hub {
    pub(crate) fn new(
        storage: Storage,
        chance: Chance,
        clock: Clock,
        faults: Faults,
        settings: HubSettings,
    ) -> Arc<Self> {
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
            tokens: IssuedTokens::default(),
            open_watches: AtomicUsize::new(0),
            me: me.clone(),
            tasks: Mutex::default(),
        })
    }

    /// Does the work that follows a write: at once for writes from the process itself, otherwise after the settle
    /// delay, if there is a runtime to wait in. The work runs in pieces: it returns whether more is left, and the state
    /// is unlocked between the pieces.
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

    /// Does work after a delay and in pieces, if there is a runtime to wait in.
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

    /// Does work in the background at this interval, if there is a runtime to wait in.
    pub(crate) fn repeat(&self, interval: Duration, work: impl Fn(&Hub) + Send + Sync + 'static) {
        let owner = self.me.clone();
        self.spawn(async move {
            loop {
                tokio::time::sleep(interval).await;
                let Some(hub) = owner.upgrade() else { return };
                work(&hub);
            }
        });
    }

    /// Does work in the background, if there is a runtime for it.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> bool {
        let Ok(runtime) = Handle::try_current() else { return false };
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(work, &runtime);
        true
    }
}

/// The settings from the builder.
#[derive(Debug, Clone)]
pub(crate) struct HubSettings {
    /// The minor version of Kubernetes that the server reports.
    pub(crate) minor_version: u32,
    pub(crate) bookmark_interval: Duration,
    /// The token that clients must send.
    pub(crate) token: Option<String>,
    /// The token for the admin address.
    pub(crate) admin_token: Option<String>,
    /// Whether watches can start with initial events, as since Kubernetes 1.34.
    pub(crate) streaming_lists: bool,
    /// A watch with more unread events than this is closed.
    pub(crate) max_watch_lag: Option<usize>,
    /// Whether watches with initial events may be compressed, as since Kubernetes 1.37.
    pub(crate) compressed_watches: bool,
    /// The pace of lists and initial events; `None` for no pauses.
    pub(crate) initial_pace: Option<PauseRate>,
    /// Whether garbage collection is enabled.
    pub(crate) garbage_collection: bool,
    /// How often the server renews its own Lease; `None` for never.
    pub(crate) lease_renewal: Option<Duration>,
    /// The closures that admit writes.
    pub(crate) admission: Vec<Admit>,
    /// The closure that decides access reviews. Without one, everything is allowed.
    pub(crate) access: Option<Access>,
    /// Where the Services that webhooks name run: `namespace/name` and the endpoint.
    pub(crate) webhook_services: Vec<(String, Endpoint)>,
    /// How long after an answer the server does the work that follows a write, such as emptying a namespace or opening
    /// a resource.
    pub(crate) settle_delay: Duration,
}
