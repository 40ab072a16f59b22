//! Configures a server.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::time::Duration;
use tower::{BoxError, Service};

use crate::api::crd::{DEFINITIONS, definition_of};
use crate::api::write::{WriteFailure, WriteOptions, create, receive};
use crate::chance::Chance;
use crate::fault::Faults;
use crate::host::bootstrap;
use crate::host::lease;
use crate::host::server::ApiServer;
use crate::hub::access::Access;
use crate::hub::admission::{Admission, Admit};
use crate::hub::clock::Clock;
use crate::hub::endpoint::Endpoint;
use crate::hub::pace::PauseRate;
use crate::hub::{Hub, HubSettings};
use crate::kinds::{Catalog, Resource};
use crate::message::document::BodyDocument;
use crate::status::Status;
use crate::storage::collection::HistoryLimits;
use crate::storage::owners::OwnerIndex;
use crate::storage::state::Storage;

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// The time at which the clock of a seeded server starts: 2026-01-01T00:00:00Z.
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
    settings: HubSettings,
    custom: Vec<Resource>,
    /// The address of the server in the objects that every cluster has; `None` if it starts without them.
    cluster_address: Option<SocketAddr>,
}

impl Default for ApiServerBuilder {
    fn default() -> Self {
        Self {
            seed: None,
            limits: HistoryLimits { max_events: 10_000, max_bytes: 64 * 1024 * 1024, max_age: None },
            settings: HubSettings {
                minor_version: 37,
                bookmark_interval: Duration::from_secs(60),
                token: None,
                admin_token: None,
                streaming_lists: true,
                max_watch_lag: None,
                compressed_watches: true,
                initial_pace: None,
                garbage_collection: false,
                lease_renewal: None,
                admission: Vec::new(),
                access: None,
                webhook_services: Vec::new(),
                settle_delay: Duration::from_millis(100),
            },
            custom: Vec::new(),
            cluster_address: None,
        }
    }
}

impl ApiServerBuilder {
    /// Draws all random values from this seed: uids, generated names, the first revision, timeouts and faults. The
    /// clock starts at a fixed time. Two servers with the same seed give the same answers to the same requests.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the interval between bookmarks of a watch that requests them: 60 seconds unless set.
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.settings.bookmark_interval = interval;
        self
    }

    /// Refuses requests that do not carry this bearer token, except requests for health and version.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.settings.token = Some(token.into());
        self
    }

    /// Sets the token that [`serve_admin`](ApiServer::serve_admin) requires. If the token is unset or empty, each admin
    /// address generates its own.
    pub fn admin_token(mut self, token: impl Into<String>) -> Self {
        self.settings.admin_token = Some(token.into());
        self
    }

    /// Sets how many events the server keeps for each resource: 10,000 unless set. A watch from an older version gets
    /// 410.
    pub fn history(mut self, max_events: usize) -> Self {
        self.limits.max_events = max_events;
        self
    }

    /// Sets how many bytes of encoded events the server keeps for each resource: 64 MiB unless set. The oldest events
    /// are dropped first, as with [`history`](Self::history). The newest event stays, whatever its size.
    pub fn history_bytes(mut self, max_bytes: usize) -> Self {
        self.limits.max_bytes = max_bytes;
        self
    }

    /// Sets for how long the server keeps events. Unless set, there is no limit by age; [`history`](Self::history) and
    /// [`history_bytes`](Self::history_bytes) still apply.
    pub fn history_age(mut self, max_age: Duration) -> Self {
        self.limits.max_age = Some(max_age);
        self
    }

    /// Behaves like Kubernetes 1.`minor` where clients notice a difference most: whether a watch can start with initial
    /// events (1.32, and since 1.34), whether such a watch is compressed (since 1.37), and the form of bookmarks (since
    /// 1.34). The default is 37.
    pub fn emulate(mut self, minor: u32) -> Self {
        self.settings.minor_version = minor;
        self.settings.streaming_lists = minor == 32 || minor >= 34;
        self.settings.compressed_watches = minor >= 37;
        self
    }

    /// Sets whether a watch may request initial events (`sendInitialEvents`). Servers before 1.34 refuse this. The
    /// default is `true`.
    pub fn streaming_lists(mut self, enabled: bool) -> Self {
        self.settings.streaming_lists = enabled;
        self
    }

    /// Sets whether watches with initial events are compressed for clients that accept gzip, as since Kubernetes 1.37.
    /// Each event is a gzip member of its own. The default is `true`.
    pub fn compressed_watches(mut self, enabled: bool) -> Self {
        self.settings.compressed_watches = enabled;
        self
    }

    /// Closes a watch that has more than `events` unread events, not counting events from before the watch was opened.
    /// Unless set, the server closes a watch when its position is no longer in the history. Both cases are recorded as
    /// the fault `slow_watch`.
    pub fn max_watch_lag(mut self, events: usize) -> Self {
        self.settings.max_watch_lag = Some(events);
        self
    }

    /// Slows down lists and the initial events of watches: the server pauses after each `objects` objects. The client
    /// still gets the state at the time of its request. Later changes follow after the end of the initial events.
    /// Unless set, the server sends everything as fast as the client reads it.
    pub fn initial_pace(mut self, objects: usize, pause: Duration) -> Self {
        self.settings.initial_pace = Some(PauseRate::new(objects, pause));
        self
    }

    /// Sets how long after an answer the server empties a deleted namespace or opens a new resource: 100 ms unless set.
    /// Direct deletes and creates from this process take effect at once.
    pub fn settle_delay(mut self, delay: Duration) -> Self {
        self.settings.settle_delay = delay;
        self
    }

    /// Deletes objects together with their owners, as the garbage collector of a cluster does. Each delete request
    /// chooses the propagation policy: background, foreground or orphan. Off unless set, as on a server without
    /// controllers. A foreground or orphan delete then only marks the object and adds the finalizer of the policy.
    pub fn garbage_collection(mut self, on: bool) -> Self {
        self.settings.garbage_collection = on;
        self
    }

    /// Renews a Lease of the server at this interval, as kube-apiserver does every 10 seconds. Each renewal advances the
    /// revision, so that watches of idle resources get bookmarks, and clients do not take them for dead. Off unless set.
    ///
    /// The server must be built inside a runtime. A paused clock would run from renewal to renewal, so leave it off there
    /// unless the test is about bookmarks.
    pub fn lease_renewal(mut self, interval: Duration) -> Self {
        self.settings.lease_renewal = Some(interval.max(Duration::from_millis(1)));
        self
    }

    /// Calls a closure before each write, in place of an admission webhook. The closure may change the object or refuse
    /// the write. Closures are called in the order in which they were added, also for direct writes from this process.
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

    /// Decides access reviews: `SubjectAccessReview` and its relatives. The closure receives the `spec` of the review and
    /// returns whether access is allowed. In a `SelfSubjectAccessReview`, user and groups are those of the client. Without
    /// a closure, everything is allowed. Requests to this server are allowed in any case.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::authorization::v1::SubjectAccessReview;
    /// use kube_client::api::{Api, PostParams};
    /// use kube_embedded_apiserver::ApiServer;
    /// # use serde_json::json;
    /// let server = ApiServer::builder()
    ///     .access_reviews(|spec| spec["user"] == "jane" && spec["resourceAttributes"]["verb"] == "get")
    ///     .build();
    /// let reviews: Api<SubjectAccessReview> = Api::all(server.client());
    /// for (user, allowed) in [("jane", true), ("joe", false)] {
    ///     let spec = json!({"user": user, "resourceAttributes": {"verb": "get", "resource": "pods"}});
    ///     let review = serde_json::from_value(json!({"metadata": {}, "spec": spec}))?;
    ///     let answer = reviews.create(&PostParams::default(), &review).await?;
    ///     assert_eq!(answer.status.unwrap().allowed, allowed);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn access_reviews(mut self, allows: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.settings.access = Some(Access::new(allows));
        self
    }

    /// Tells the server where the Service `namespace/name` of admission and conversion webhooks runs: on a loopback
    /// address, over HTTPS. A webhook whose `clientConfig` has a `url` with a loopback address needs no entry.
    ///
    /// ```
    /// use kube_embedded_apiserver::ApiServer;
    ///
    /// let address = ([127, 0, 0, 1], 9443).into();
    /// let server = ApiServer::builder().webhook_address("system/webhook", address).build();
    /// ```
    pub fn webhook_address(mut self, service: &str, address: SocketAddr) -> Self {
        self.settings.webhook_services.push((service.to_owned(), Endpoint::Address(address)));
        self
    }

    /// Tells the server that a service in this process, such as an axum router, answers for the Service
    /// `namespace/name` of admission and conversion webhooks. It is called without TLS.
    pub fn webhook_service<S, B>(mut self, service: &str, answers: S) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        self.settings.webhook_services.push((service.to_owned(), Endpoint::in_process(answers)));
        self
    }

    /// Starts with the objects that every cluster has: Service, Endpoints and EndpointSlice `default/kubernetes`, ConfigMap
    /// `kube-system/extension-apiserver-authentication`, the ClusterRoles `cluster-admin`, `admin`, `edit` and `view`, and
    /// the PriorityClasses of the system. The endpoints have this address.
    ///
    /// Unless set, a server has four namespaces and no other object, so a test sees only the objects that it created.
    pub fn cluster_objects(mut self, address: SocketAddr) -> Self {
        self.cluster_address = Some(address);
        self
    }

    /// Adds a custom resource, with its CRD.
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

    /// Builds the server. Inside a runtime with a paused clock, timestamps of objects follow that clock.
    #[must_use]
    pub fn build(self) -> ApiServer {
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one("seed"));
        let chance = Chance::new(seed);
        let now = Timestamp::now();
        let (start, base) = match self.seed {
            Some(_) => (Timestamp::from_second(SEEDED_START).unwrap_or(now), chance.within(1_000..1_000_000)),
            // Higher than any revision of an earlier server. A stale version is then too old, and never in the future.
            None => (now, u64::try_from(now.as_millisecond()).unwrap_or(1)),
        };
        let storage = Storage::new(base, Catalog::built_in(), self.limits);
        let hub = Hub::new(storage, chance, Clock::starting_at(start), Faults::new(seed), self.settings);
        if hub.settings.garbage_collection {
            hub.storage.lock().owners = Some(OwnerIndex::default());
        }
        NAMESPACES.iter().for_each(|name| put(&hub, "namespaces", json!({"metadata": {"name": name}})));
        for (resource, object) in self.cluster_address.into_iter().flat_map(bootstrap::objects) {
            put(&hub, resource, object);
        }
        self.custom.iter().for_each(|resource| put(&hub, DEFINITIONS, definition_of(resource)));
        if let Some(interval) = hub.settings.lease_renewal {
            lease::keep(&hub, interval);
        }
        ApiServer::from_hub(hub)
    }
}

/// Creates an object that every server starts with.
fn put(hub: &Hub, resource: &str, object: Value) {
    let resource = hub.storage.lock().catalog.named(resource).cloned();
    // If a name occurs twice or a CRD is invalid, the first object stays unchanged.
    if let Some(resource) = resource
        && let Err(error) = start_with(hub, &resource, object)
    {
        let status = Status::from(error);
        tracing::warn!(%status, "cannot create what the server was to start with");
    }
}

fn start_with(hub: &Hub, resource: &Resource, value: Value) -> Result<(), WriteFailure> {
    let options = WriteOptions::host();
    let received = receive(resource, BodyDocument { value, duplicates: Vec::new() }, &options)?;
    let namespace = received.object["metadata"]["namespace"].as_str().map(str::to_owned);
    create(hub, resource, namespace.as_deref(), received.object, &options).map(drop)
}
