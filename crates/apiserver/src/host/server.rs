//! The handle of a server.

use http::{Request, header};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tower::ServiceExt;

use crate::api::write;
use crate::fault::Faults;
use crate::host::builder::ApiServerBuilder;
use crate::hub::Hub;
use crate::hub::journal::RequestRecord;
use crate::kinds::Resource;
use crate::storage::state::LockedState;
use crate::wire::auth;

/// A Kubernetes-compatible API server in memory.
///
/// A clone is another handle of the same server. The server is a [`tower::Service`] in process. It can listen for HTTP
/// with [`serve`](Self::serve), and the process can read and write it directly.
///
/// ```
/// use kube_embedded_apiserver::ApiServer;
/// use serde_json::json;
///
/// let server = ApiServer::new();
/// server.create("configmaps", Some("default"), json!({"metadata": {"name": "a"}})).unwrap();
/// let (revision, items) = server.clone().list("configmaps").unwrap();
/// assert_eq!((revision, items.len()), (server.revision(), 1));
/// ```
#[derive(Debug, Clone)]
pub struct ApiServer {
    pub(crate) hub: Arc<Hub>,
}

/// The whole state of a server at one time, returned by [`ApiServer::save`].
#[derive(Debug, Clone)]
pub struct Saved(LockedState);

/// Whether a restarted server keeps its event history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// Watches can continue from their last version.
    Kept,
    /// A watch from a version before the restart gets 410.
    Lost,
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl ApiServer {
    /// Returns a server with default settings.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder, to configure a server.
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder::default()
    }

    pub(crate) fn from_hub(hub: Arc<Hub>) -> Self {
        Self { hub }
    }

    /// Returns a client of this server. The client is in process: it needs no port, and no task but its own. Its
    /// default namespace is `default`, and it sends the token of the server.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use k8s_openapi::api::core::v1::Namespace;
    /// # use kube_client::api::Api;
    /// let namespaces: Api<Namespace> = Api::all(ApiServer::new().client());
    /// assert!(namespaces.get("kube-system").await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime, because the client needs one.
    #[must_use]
    pub fn client(&self) -> kube_client::Client {
        let authorization = self.hub.settings.token.as_deref().and_then(auth::header);
        let service = self.clone().map_request(move |mut request: Request<kube_client::client::Body>| {
            if let Some(authorization) = &authorization {
                request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
            }
            request
        });
        kube_client::Client::new(service, "default")
    }

    /// Returns the revision of the last write to any resource.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.hub.storage.revision()
    }

    /// Drops all history up to now, and records the fault `compact`. Watches and exact lists from earlier versions get
    /// 410; open watches continue.
    pub fn compact(&self) {
        self.hub.faults.record_server("compact");
        self.hub.storage.compact();
    }

    /// Breaks every open watch, as a connection reset would.
    pub fn disconnect_watches(&self) {
        self.hub.faults.record_server("disconnect");
        self.hub.storage.disconnect();
    }

    /// Returns the number of open watches.
    #[must_use]
    pub fn open_watches(&self) -> usize {
        self.hub.open_watches.load(Ordering::Relaxed)
    }

    /// Saves the current state, for [`restore`](Self::restore).
    #[must_use]
    pub fn save(&self) -> Saved {
        Saved(self.hub.storage.lock().clone())
    }

    /// Restores a saved state, as when a cluster is restored from a backup. The revision goes back too, and every open
    /// watch breaks. Work that was pending in the saved state starts again, such as the deletion of a namespace.
    ///
    /// ```
    /// use kube_embedded_apiserver::ApiServer;
    /// # use serde_json::json;
    /// let server = ApiServer::new();
    /// let (before, saved) = (server.revision(), server.save());
    /// server.create("nodes", None, json!({"metadata": {"name": "n"}})).unwrap();
    /// server.restore(&saved);
    /// assert!(server.get("nodes", None, "n").is_err());
    /// assert_eq!((server.revision(), server.faults().count("restore")), (before, 1));
    /// ```
    pub fn restore(&self, saved: &Saved) {
        self.hub.faults.record_server("restore");
        self.hub.storage.replace(saved.0.clone());
        write::resume(&self.hub, &mut self.hub.storage.lock());
    }

    /// Restarts the server. Objects and revision stay, every open watch breaks, and `history` says whether the history
    /// stays.
    pub fn restart(&self, history: History) {
        self.hub.faults.record_server("restart");
        if history == History::Lost {
            self.hub.storage.compact();
        }
        self.hub.storage.disconnect();
    }

    /// Skews the clock of the server by `seconds` from now on. Timestamps of objects show the skew.
    pub fn set_clock_skew(&self, seconds: i64) {
        self.hub.faults.record_server("clock_skew");
        self.hub.clock.set_skew(seconds);
    }

    /// Returns the faults of this server, and the record of those that fired.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.hub.faults
    }

    /// Returns the requests so far, in the order of their arrival. The server keeps the last 100,000, or fewer if their
    /// paths and queries take more than 64 MiB.
    #[must_use]
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.hub.journal.records()
    }

    /// Clears the record of requests.
    pub fn clear_requests(&self) {
        self.hub.journal.clear();
    }

    /// Returns the resources that the server offers now.
    #[must_use]
    pub fn resources(&self) -> Vec<Arc<Resource>> {
        self.hub.storage.lock().catalog.iter().cloned().collect()
    }
}
