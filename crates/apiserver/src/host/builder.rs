//! Configures a server.

use jiff::Timestamp;
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::api::crd::{DEFINITIONS, definition_of};
use crate::api::write::{WriteFailure, WriteOptions, create, receive};
use crate::chance::Chance;
use crate::fault::Faults;
use crate::host::server::ApiServer;
use crate::hub::admission::{Admission, Admit};
use crate::hub::clock::Clock;
use crate::hub::pace::Pace;
use crate::hub::{Hub, Settings};
use crate::kinds::{Catalog, Resource};
use crate::message::document::Document;
use crate::status::Status;
use crate::storage::collection::HistoryLimits;
use crate::storage::owners::Owners;
use crate::storage::state::Storage;

/// The namespaces every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// What the clock of a seeded server shows when it starts: 2026-01-01T00:00:00Z.
const SEEDED_START: i64 = 1_767_225_600;

/// Configures an [`ApiServer`].
///
/// ```
/// use kube_embedded_apiserver::ApiServer;
///
/// let server = ApiServer::builder().seed(7).history(100).token("secret").build();
/// assert_eq!(server.list("namespaces").unwrap().1.len(), 4);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ApiServerBuilder {
    seed: Option<u64>,
    limits: HistoryLimits,
    settings: Settings,
    custom: Vec<Resource>,
}

impl Default for ApiServerBuilder {
    fn default() -> Self {
        let widgets =
            Resource::custom("demo.example.com", "v1", "widgets", "Widget").scalable().selectable("spec.size");
        Self {
            seed: None,
            limits: HistoryLimits { max_events: 10_000, max_bytes: 64 * 1024 * 1024, max_age: None },
            settings: Settings {
                minor_version: 37,
                bookmark_interval: Duration::from_secs(60),
                token: None,
                admin_token: None,
                streaming_lists: true,
                max_watch_lag: None,
                compressed_watches: true,
                initial_pace: None,
                garbage_collection: false,
                admission: Vec::new(),
                settle_delay: Duration::from_millis(100),
            },
            custom: vec![widgets],
        }
    }
}

impl ApiServerBuilder {
    /// Draws all chance from this seed: uids, generated names, the first revision, timeouts and faults. The clock starts
    /// at a fixed time. Two servers with one seed that are asked the same give the same answers.
    ///
    /// ```
    /// use kube_embedded_apiserver::ApiServer;
    /// # use serde_json::json;
    /// let uid = || {
    ///     let server = ApiServer::builder().seed(7).build();
    ///     server.create("nodes", None, json!({"metadata": {"name": "n"}})).unwrap()["metadata"]["uid"].clone()
    /// };
    /// assert_eq!(uid(), uid());
    /// ```
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How often a watch that takes bookmarks gets one: 60 seconds unless set.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use futures_util::{StreamExt, TryStreamExt};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube_client::api::{Api, WatchEvent, WatchParams};
    /// # use serde_json::json;
    /// # use std::time::Duration;
    /// let server = ApiServer::builder().bookmark_interval(Duration::from_secs(5)).build();
    /// let pods: Api<Pod> = Api::all(server.client());
    /// let mut events = pods.watch(&WatchParams::default(), &server.revision().to_string()).await?.boxed();
    /// server.create("namespaces", None, json!({"metadata": {"name": "web"}}))?; // Something new, if not about pods.
    /// assert!(matches!(events.try_next().await?, Some(WatchEvent::Bookmark(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.settings.bookmark_interval = interval;
        self
    }

    /// Refuses requests that do not carry this bearer token, except for health and version.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use http::Request;
    /// # use http_body_util::Empty;
    /// # use tower::ServiceExt;
    /// let server = ApiServer::builder().token("secret").build();
    /// let bare = Request::get("/api/v1/pods").body(Empty::<bytes::Bytes>::new())?;
    /// assert_eq!(server.clone().oneshot(bare).await?.status(), 401);
    /// assert!(server.client().list_core_api_resources("v1").await.is_ok()); // It knows the token.
    /// # Ok(())
    /// # }
    /// ```
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.settings.token = Some(token.into());
        self
    }

    /// The token that [`serve_admin`](ApiServer::serve_admin) asks for. Unless set, or if it is empty, each address makes one of its own.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    ///
    /// let admin = ApiServer::builder().admin_token("known").build().serve_admin("127.0.0.1:0").await?;
    /// assert_eq!(admin.token(), Some("known"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn admin_token(mut self, token: impl Into<String>) -> Self {
        self.settings.admin_token = Some(token.into());
        self
    }

    /// How many events each resource remembers: 10,000 unless set. Watches from before them get 410.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use futures_util::{StreamExt, TryStreamExt};
    /// # use k8s_openapi::api::core::v1::Node;
    /// # use kube_client::api::{Api, WatchEvent, WatchParams};
    /// # use serde_json::json;
    /// let server = ApiServer::builder().history(1).build();
    /// let old = server.revision().to_string();
    /// for name in ["a", "b"] {
    ///     server.create("nodes", None, json!({"metadata": {"name": name}}))?;
    /// }
    /// let nodes: Api<Node> = Api::all(server.client());
    /// let mut events = nodes.watch(&WatchParams::default(), &old).await?.boxed();
    /// assert!(matches!(events.try_next().await?, Some(WatchEvent::Error(status)) if status.code == 410));
    /// # Ok(())
    /// # }
    /// ```
    pub fn history(mut self, max_events: usize) -> Self {
        self.limits.max_events = max_events;
        self
    }

    /// How many bytes of encoded events each resource remembers: 64 MiB unless set. What exceeds them is forgotten as
    /// what exceeds [`history`](Self::history) is; the newest event stays, whatever its size.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use futures_util::{StreamExt, TryStreamExt};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_client::api::{Api, WatchEvent, WatchParams};
    /// # use serde_json::json;
    /// let server = ApiServer::builder().history_bytes(10_000).build();
    /// let old = server.revision().to_string();
    /// for name in ["a", "b"] {
    ///     let data = json!({"text": "x".repeat(6_000)});
    ///     server.create("configmaps", Some("default"), json!({"metadata": {"name": name}, "data": data}))?;
    /// }
    /// let maps: Api<ConfigMap> = Api::all(server.client());
    /// let mut events = maps.watch(&WatchParams::default(), &old).await?.boxed();
    /// assert!(matches!(events.try_next().await?, Some(WatchEvent::Error(status)) if status.code == 410));
    /// # Ok(())
    /// # }
    /// ```
    pub fn history_bytes(mut self, max_bytes: usize) -> Self {
        self.limits.max_bytes = max_bytes;
        self
    }

    /// How long events are remembered: for ever, within [`history`](Self::history) and
    /// [`history_bytes`](Self::history_bytes), unless set.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use futures_util::{StreamExt, TryStreamExt};
    /// # use k8s_openapi::api::core::v1::Node;
    /// # use kube_client::api::{Api, WatchEvent, WatchParams};
    /// # use serde_json::json;
    /// # use std::time::Duration;
    /// let server = ApiServer::builder().history_age(Duration::from_secs(300)).build();
    /// let old = server.revision().to_string();
    /// server.create("nodes", None, json!({"metadata": {"name": "n"}}))?;
    /// tokio::time::sleep(Duration::from_secs(301)).await;
    /// let nodes: Api<Node> = Api::all(server.client());
    /// let mut events = nodes.watch(&WatchParams::default(), &old).await?.boxed();
    /// assert!(matches!(events.try_next().await?, Some(WatchEvent::Error(status)) if status.code == 410));
    /// # Ok(())
    /// # }
    /// ```
    pub fn history_age(mut self, max_age: Duration) -> Self {
        self.limits.max_age = Some(max_age);
        self
    }

    /// Behaves like Kubernetes 1.`minor` in what clients notice most: whether watches begin with initial events (1.32
    /// and since 1.34), whether those are compressed (since 1.37), and how bookmarks look (since 1.34). 37 unless set.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    ///
    /// let server = ApiServer::builder().emulate(30).build();
    /// assert_eq!(server.client().apiserver_version().await?.minor, "30");
    /// # Ok(())
    /// # }
    /// ```
    pub fn emulate(mut self, minor: u32) -> Self {
        self.settings.minor_version = minor;
        self.settings.streaming_lists = minor == 32 || minor >= 34;
        self.settings.compressed_watches = minor >= 37;
        self
    }

    /// Whether a watch may ask for initial events (`sendInitialEvents`), as servers before 1.34 refuse to: yes unless set.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use k8s_openapi::api::core::v1::Node;
    /// # use kube_client::api::{Api, WatchParams};
    /// let server = ApiServer::builder().streaming_lists(false).build();
    /// let nodes: Api<Node> = Api::all(server.client());
    /// assert!(nodes.watch(&WatchParams::default().initial_events(), "0").await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn streaming_lists(mut self, enabled: bool) -> Self {
        self.settings.streaming_lists = enabled;
        self
    }

    /// Whether watches with initial events are compressed for clients that accept gzip, each event as a member of its
    /// own, as servers do since 1.37: yes unless set.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use http::Request;
    /// # use http_body_util::Empty;
    /// # use tower::ServiceExt;
    /// for enabled in [true, false] {
    ///     let server = ApiServer::builder().compressed_watches(enabled).build();
    ///     let watch = Request::get("/api/v1/pods?watch=1&allowWatchBookmarks=1").header("accept-encoding", "gzip");
    ///     let answer = server.oneshot(watch.body(Empty::<bytes::Bytes>::new())?).await?;
    ///     assert_eq!(answer.headers().contains_key("content-encoding"), enabled);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn compressed_watches(mut self, enabled: bool) -> Self {
        self.settings.compressed_watches = enabled;
        self
    }

    /// Closes a watch that leaves more than so many events unread, not counting those from before it was opened. Unless
    /// set, it is closed when its place in the history is gone. Either is on the record of faults as `slow_watch`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use futures_util::{StreamExt, TryStreamExt};
    /// # use k8s_openapi::api::core::v1::Node;
    /// # use kube_client::api::{Api, WatchParams};
    /// # use serde_json::json;
    /// let server = ApiServer::builder().max_watch_lag(1).build();
    /// let nodes: Api<Node> = Api::all(server.client());
    /// let mut events = nodes.watch(&WatchParams::default(), &server.revision().to_string()).await?.boxed();
    /// for name in ["a", "b"] {
    ///     server.create("nodes", None, json!({"metadata": {"name": name}}))?;
    /// }
    /// assert!(events.try_next().await?.is_none());
    /// assert_eq!(server.faults().count("slow_watch"), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_watch_lag(mut self, events: usize) -> Self {
        self.settings.max_watch_lag = Some(events);
        self
    }

    /// Lets whole states take their time: lists and the initial events of watches pause after every so many objects. What
    /// is shown is the state as it was when it was asked for; what happens meanwhile is sent behind the end of the initial
    /// events. Unless set, everything is sent as fast as it is read.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use futures_util::{StreamExt, TryStreamExt};
    /// # use k8s_openapi::api::core::v1::Namespace;
    /// # use kube_client::api::{Api, WatchEvent, WatchParams};
    /// # use std::time::Duration;
    /// let server = ApiServer::builder().initial_pace(3, Duration::from_secs(10)).build();
    /// let namespaces: Api<Namespace> = Api::all(server.client());
    /// let started = tokio::time::Instant::now();
    /// assert_eq!(namespaces.list(&Default::default()).await?.items.len(), 4);
    /// assert_eq!(started.elapsed().as_secs(), 10); // Three, a pause, and one more.
    /// let mut events = namespaces.watch(&WatchParams::default().initial_events(), "0").await?.boxed();
    /// for seconds in [10, 10, 10, 20] {
    ///     assert!(matches!(events.try_next().await?, Some(WatchEvent::Added(_))));
    ///     assert_eq!(started.elapsed().as_secs(), seconds);
    /// }
    /// assert!(matches!(events.try_next().await?, Some(WatchEvent::Bookmark(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn initial_pace(mut self, objects: usize, pause: Duration) -> Self {
        self.settings.initial_pace = Some(Pace::new(objects, pause));
        self
    }

    /// How long after an answer the server empties a deleted namespace or opens a new resource: 100 ms unless set.
    /// What the process itself deletes and creates takes effect at once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use k8s_openapi::api::core::v1::Namespace;
    /// # use kube_client::api::Api;
    /// # use serde_json::json;
    /// # use std::time::Duration;
    /// let server = ApiServer::builder().settle_delay(Duration::from_secs(10)).build();
    /// server.create("namespaces", None, json!({"metadata": {"name": "web"}}))?;
    /// let namespaces: Api<Namespace> = Api::all(server.client());
    /// namespaces.delete("web", &Default::default()).await?;
    /// assert!(server.get("namespaces", None, "web").is_ok()); // On its way out.
    /// tokio::time::sleep(Duration::from_secs(11)).await;
    /// assert!(server.get("namespaces", None, "web").is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn settle_delay(mut self, delay: Duration) -> Self {
        self.settings.settle_delay = delay;
        self
    }

    /// Lets objects go with their owners, as the garbage collector of a cluster does: afterwards, before them, or not at all, as each
    /// delete says. Off unless set, as on a server that runs without controllers.
    ///
    /// ```
    /// use kube_embedded_apiserver::ApiServer;
    /// # use serde_json::json;
    /// let server = ApiServer::builder().garbage_collection(true).build();
    /// let owner = server.create("configmaps", Some("default"), json!({"metadata": {"name": "owner"}})).unwrap();
    /// let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    /// let owned = json!({"metadata": {"name": "owned", "ownerReferences": [reference]}});
    /// server.create("configmaps", Some("default"), owned).unwrap();
    /// server.delete("configmaps", Some("default"), "owner").unwrap();
    /// assert!(server.get("configmaps", Some("default"), "owned").is_err());
    /// ```
    pub fn garbage_collection(mut self, on: bool) -> Self {
        self.settings.garbage_collection = on;
        self
    }

    /// Asks a closure before anything is written, in place of an admission webhook: it may change the object, or refuse. Several
    /// are asked in the order they were added. What the process itself writes is asked for too.
    ///
    /// ```
    /// use kube_embedded_apiserver::{ApiServer, Status};
    /// # use serde_json::json;
    /// let server = ApiServer::builder()
    ///     .admission(|write| {
    ///         if write.resource.id() != "configmaps" {
    ///             return Ok(());
    ///         }
    ///         if write.name == "forbidden" {
    ///             return Err(Status::failure(403, "Forbidden", "not here"));
    ///         }
    ///         write.object["metadata"]["labels"]["seen"] = "yes".into();
    ///         Ok(())
    ///     })
    ///     .build();
    /// let map = server.create("configmaps", Some("default"), json!({"metadata": {"name": "a"}})).unwrap();
    /// assert_eq!(map["metadata"]["labels"]["seen"], "yes");
    /// let refused = server.create("configmaps", Some("default"), json!({"metadata": {"name": "forbidden"}}));
    /// assert_eq!(refused.unwrap_err().code, 403);
    /// ```
    pub fn admission(
        mut self,
        admit: impl Fn(&mut Admission<'_>) -> Result<(), Status> + Send + Sync + 'static,
    ) -> Self {
        self.settings.admission.push(Admit::new(admit));
        self
    }

    /// Offers one more custom resource beside `widgets.demo.example.com`.
    ///
    /// ```
    /// use kube_embedded_apiserver::{ApiServer, Resource};
    /// # use serde_json::json;
    /// let gadgets = Resource::custom("shop.example.com", "v1", "gadgets", "Gadget");
    /// let server = ApiServer::builder().with_custom_resource(gadgets).build();
    /// let gadget = server.create("gadgets", Some("default"), json!({"metadata": {"name": "g"}})).unwrap();
    /// assert_eq!(gadget["apiVersion"], "shop.example.com/v1");
    /// ```
    pub fn with_custom_resource(mut self, resource: Resource) -> Self {
        self.custom.push(resource);
        self
    }

    /// Makes the server. Inside a runtime with a paused clock, time in objects follows that clock.
    #[must_use]
    pub fn build(self) -> ApiServer {
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one("seed"));
        let chance = Chance::new(seed);
        let now = Timestamp::now();
        let (start, base) = match self.seed {
            Some(_) => (Timestamp::from_second(SEEDED_START).unwrap_or(now), chance.within(1_000..1_000_000)),
            // Far above any revision of an earlier server, so that stale versions are too old and never in the future.
            None => (now, u64::try_from(now.as_millisecond()).unwrap_or(1)),
        };
        let storage = Storage::new(base, Catalog::built_in(), self.limits);
        let hub = Hub::new(storage, chance, Clock::starting_at(start), Faults::new(seed), self.settings);
        if hub.settings.garbage_collection {
            hub.storage.lock().owners = Some(Owners::default());
        }
        NAMESPACES.iter().for_each(|name| put(&hub, "namespaces", json!({"metadata": {"name": name}})));
        self.custom.iter().for_each(|resource| put(&hub, DEFINITIONS, definition_of(resource)));
        ApiServer::from_hub(hub)
    }
}

/// Creates an object every server starts with.
fn put(hub: &Hub, resource: &str, object: Value) {
    let resource = hub.storage.lock().catalog.named(resource).cloned();
    // A name that is there twice, or a definition that is none, leaves the first one as it is.
    if let Some(resource) = resource
        && let Err(error) = start_with(hub, &resource, object)
    {
        let status = Status::from(error);
        tracing::warn!(%status, "cannot create what the server was to start with");
    }
}

fn start_with(hub: &Hub, resource: &Resource, value: Value) -> Result<(), WriteFailure> {
    let options = WriteOptions::host();
    let received = receive(resource, Document { value, duplicates: Vec::new() }, &options)?;
    create(hub, resource, None, received.object, &options).map(drop)
}
