//! Direct reads and writes from within the process, without HTTP and without waiting: for tests and simulations.

use serde_json::Value;
use std::sync::Arc;

use crate::api::write::{self, DeleteOptions, Patch, Subresource, Trust, WriteOptions, receive};
use crate::host::server::ApiServer;
use crate::kinds::Resource;
use crate::message::document::BodyDocument;
use crate::status::Status;
use crate::storage::key::StoreKey;

/// Direct access. A resource is named by its plural (`pods`), or by its plural and group (`widgets.demo.example.com`).
///
/// Direct writes are trusted. They may set status, a create also creates a missing namespace, and custom objects may
/// omit `kind` and `apiVersion`. Everything else is as over HTTP: versions, uids, generations and conflicts. A write
/// that changes nothing makes no event.
impl ApiServer {
    /// Creates an object and returns it as stored.
    ///
    /// If the namespace is missing, the server creates it first with a separate write, so watches get an event for it.
    /// Clients over HTTP get 404 instead, as from kube-apiserver.
    ///
    /// ```
    /// use kube_embedded_apiserver::ApiServer;
    /// # use serde_json::json;
    /// let server = ApiServer::new();
    /// let before = server.revision();
    /// let map = server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}})).unwrap();
    /// assert_eq!(map["kind"], "ConfigMap");
    /// assert_eq!(server.get("namespaces", None, "web").unwrap()["status"]["phase"], "Active");
    /// assert_eq!(server.revision(), before + 2);
    /// let again = server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}));
    /// assert_eq!(again.unwrap_err().code, 409);
    /// ```
    ///
    /// # Errors
    ///
    /// The status that an API server would return: the name is taken, the namespace is being deleted, or the object is
    /// not a valid object of this kind.
    pub fn create(&self, resource: &str, namespace: Option<&str>, object: Value) -> Result<Value, Status> {
        let resource = self.resource(resource)?;
        let options = WriteOptions::host();
        let object = receive(&resource, plain(object), &options)?.object;
        write::create(&self.hub, &resource, namespace, object, &options)
            .map(|outcome| outcome.value(&resource))
            .map_err(Status::from)
    }

    /// Replaces the object with the name in `metadata.name`, and returns it as stored. If the object has a
    /// `resourceVersion`, it must be the stored one. Without a `resourceVersion` the stored object is always replaced.
    ///
    /// # Errors
    ///
    /// The status that an API server would return: the object does not exist, or its version differs.
    pub fn update(&self, resource: &str, namespace: Option<&str>, object: Value) -> Result<Value, Status> {
        let resource = self.resource(resource)?;
        let options = WriteOptions::host();
        let object = receive(&resource, plain(object), &options)?.object;
        let key = key(&resource, namespace, object["metadata"]["name"].as_str().unwrap_or_default());
        write::update(&self.hub, &resource, &key, object, Subresource::Main, &options)
            .map(|outcome| outcome.value(&resource))
            .map_err(Status::from)
    }

    /// Stores an object without checks and without defaults, in place of the stored object of the same name. The server
    /// sets only name, uid and creation time.
    ///
    /// This is for tests of clients that get objects they cannot decode. All other writes store only objects that fit
    /// their type.
    ///
    /// ```
    /// use kube_embedded_apiserver::ApiServer;
    /// # use serde_json::json;
    /// let server = ApiServer::new();
    /// let odd = json!({"metadata": {"name": "odd"}, "data": {"a number": 5}});
    /// assert_eq!(server.create("configmaps", Some("default"), odd.clone()).unwrap_err().code, 400);
    /// assert_eq!(server.put_as_is("configmaps", Some("default"), odd).unwrap()["data"]["a number"], 5);
    /// ```
    ///
    /// # Errors
    ///
    /// The resource does not exist, or the object has no name.
    pub fn put_as_is(&self, resource: &str, namespace: Option<&str>, object: Value) -> Result<Value, Status> {
        let resource = self.resource(resource)?;
        let key = key(&resource, namespace, object["metadata"]["name"].as_str().unwrap_or_default());
        write::put_as_is(&self.hub, &resource, &key, object)
            .map(|outcome| outcome.value(&resource))
            .map_err(Status::from)
    }

    /// Applies a JSON merge patch to an object and returns it as stored; null removes a member.
    ///
    /// ```
    /// use kube_embedded_apiserver::ApiServer;
    /// # use serde_json::json;
    /// let server = ApiServer::new();
    /// server.create("nodes", None, json!({"metadata": {"name": "n", "labels": {"a": "1"}}})).unwrap();
    /// let node = server.patch("nodes", None, "n", json!({"metadata": {"labels": {"a": null, "b": "2"}}})).unwrap();
    /// assert_eq!(node["metadata"]["labels"], json!({"b": "2"}));
    /// ```
    ///
    /// # Errors
    ///
    /// The status that an API server would return: the object does not exist, or the result of the patch is not valid.
    pub fn patch(&self, resource: &str, namespace: Option<&str>, name: &str, merge: Value) -> Result<Value, Status> {
        self.patch_with(resource, namespace, name, |_| merge.clone())
    }

    /// Applies a JSON merge patch that `change` computes from the current object. If another client writes in between,
    /// the patch is computed again.
    pub(crate) fn patch_with(
        &self,
        resource: &str,
        namespace: Option<&str>,
        name: &str,
        merge: impl Fn(&Value) -> Value,
    ) -> Result<Value, Status> {
        let resource = self.resource(resource)?;
        let key = key(&resource, namespace, name);
        let change = |stored: &Value| Ok(Patch::Merge(merge(stored).into()).apply(stored, &resource)?);
        write::patch_with(&self.hub, &resource, &key, &WriteOptions::host(), change)
            .map(|outcome| outcome.value(&resource))
            .map_err(Status::from)
    }

    /// Deletes an object at once, unless it has finalizers, and returns the answer of the API server.
    ///
    /// # Errors
    ///
    /// The status that an API server would return: the object does not exist.
    pub fn delete(&self, resource: &str, namespace: Option<&str>, name: &str) -> Result<Value, Status> {
        let resource = self.resource(resource)?;
        let options = DeleteOptions { trust: Trust::Host, ..DeleteOptions::default() };
        let key = key(&resource, namespace, name);
        write::delete(&self.hub, &resource, &key, &options)
            .map(|outcome| outcome.value(&resource))
            .map_err(Status::from)
    }

    /// Returns an object.
    ///
    /// # Errors
    ///
    /// The status that an API server would return: the object does not exist.
    pub fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Result<Value, Status> {
        let resource = self.resource(resource)?;
        let found = self.hub.storage.lock().object(&resource, &key(&resource, namespace, name));
        found.map(|object| object.value_as(&resource)).ok_or_else(|| Status::not_found(&resource, name))
    }

    /// Returns all objects of a resource in all namespaces, in list order, and the revision of the list.
    ///
    /// # Errors
    ///
    /// The resource does not exist.
    pub fn list(&self, resource: &str) -> Result<(u64, Vec<Value>), Status> {
        let resource = self.resource(resource)?;
        let (revision, objects) = {
            let mut state = self.hub.storage.lock();
            (state.revision, state.collection(&resource).objects().clone())
        };
        Ok((revision, objects.values().map(|object| object.value_as(&resource)).collect()))
    }

    /// Marks a pod as being deleted, as its owner would. The pod stays until it is deleted a second time.
    pub(crate) fn stop_pod(&self, namespace: &str, name: &str) -> Option<()> {
        let pods = self.resource("pods").ok()?;
        let options = DeleteOptions { grace_period: Some(30), ..DeleteOptions::default() };
        write::delete(&self.hub, &pods, &key(&pods, Some(namespace), name), &options).ok().map(|_| ())
    }

    fn resource(&self, name: &str) -> Result<Arc<Resource>, Status> {
        self.hub.storage.lock().catalog.named(name).cloned().ok_or_else(Status::no_such_resource)
    }
}

fn plain(value: Value) -> BodyDocument {
    BodyDocument { value, duplicates: Vec::new() }
}

fn key(resource: &Resource, namespace: Option<&str>, name: &str) -> StoreKey {
    StoreKey::new(namespace.filter(|_| resource.namespaced), name)
}
