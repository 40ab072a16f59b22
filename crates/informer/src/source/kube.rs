//! The source over a [`kube_client::Client`]: requests, answers, and the types of `kube` as objects.
//!
//! This is the only module that talks to a server. It asks for JSON without compression, reads the raw body, and decodes
//! each object once.

mod decode;
mod status;

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, header};
use http_body_util::BodyExt as _;
use kube_client::Client;
use kube_client::client::Body;
use kube_core::{ApiResource, Resource};
use serde::de::DeserializeOwned;

use self::decode::Decoder;
use self::status::read_status;
use super::frames::Lines;
use super::items::{ExpectedKind, ItemSplitter};
use super::{
    BadObject, Decoded, Events, Identity, Items, ListOptions, ListPart, ListWatch, SourceError, WatchEvent,
    WatchOptions,
};
use crate::object::{DecodeError, Id, KeyRef, Kind, ManagedFields, Object, Raw, ResourceType};

/// Objects above this size are refused unless the source is told otherwise: 32 MiB.
pub const DEFAULT_OBJECT_LIMIT: usize = 32 * 1024 * 1024;

/// Lists and watches one collection of an API server.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{SharedInformer, source::kube::KubeSource};
/// # use serde_json::json;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = kube_embedded_apiserver::ApiServer::new();
/// server.create("configmaps", Some("web"), json!({"metadata": {"name": "a", "labels": {"app": "shop"}}}))?;
/// server.create("configmaps", Some("web"), json!({"metadata": {"name": "b"}}))?;
///
/// let source = KubeSource::<ConfigMap>::new(server.client()).namespace("web").labels("app=shop");
/// let maps = SharedInformer::builder(source).build();
/// maps.start()?;
/// maps.synced().await?;
/// assert!(maps.store().contains("web/a") && !maps.store().contains("web/b"));
/// maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct KubeSource<T> {
    client: Client,
    resource: ResourceType,
    selection: Selection,
    metadata_only: bool,
    managed_fields: ManagedFields,
    object_limit: usize,
    objects: PhantomData<fn() -> T>,
}

/// Which objects of a collection, in the server's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Selection {
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) extra: Vec<(String, String)>,
}

impl Selection {
    /// This, and another's where nothing was said. Namespaces are not looked at.
    pub(crate) fn or(self, other: &Self) -> Self {
        let extra = if self.extra.is_empty() { other.extra.clone() } else { self.extra };
        Self {
            namespace: None,
            labels: self.labels.or_else(|| other.labels.clone()),
            fields: self.fields.or_else(|| other.fields.clone()),
            extra,
        }
    }
}

impl<T: Kind> KubeSource<T> {
    /// All objects of a kind, in all namespaces.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::object::Object;
    /// # use kube_informer::source::{Decoded, ListOptions, ListPart, ListWatch as _, kube::KubeSource};
    /// # async fn listed<T: Object>(source: KubeSource<T>) -> Vec<String> {
    /// #     let mut items = source.list(ListOptions::default()).await.unwrap();
    /// #     let mut keys = Vec::new();
    /// #     while let Some(Ok(ListPart::Item(Decoded::Object(object)))) = items.next().await {
    /// #         keys.push(object.id().key.to_string());
    /// #     }
    /// #     keys
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # let map = |name| serde_json::json!({"metadata": {"name": name, "labels": {"app": name}}});
    /// # server.create("configmaps", Some("web"), map("a"))?;
    /// # server.create("configmaps", Some("web"), map("b"))?;
    /// # server.create("configmaps", Some("shop"), map("c"))?;
    /// # let client = server.client();
    /// let maps = KubeSource::<ConfigMap>::new(client);
    /// assert_eq!(listed(maps).await, ["shop/c", "web/a", "web/b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn new(client: Client) -> Self {
        Self::of(client, T::resource_type())
    }
}

impl<T: Object> KubeSource<T> {
    /// All objects of a collection that is known at run time only.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use kube_informer::object::Object;
    /// # use kube_informer::source::{Decoded, ListOptions, ListPart, ListWatch as _, kube::KubeSource};
    /// # async fn listed<T: Object>(source: KubeSource<T>) -> Vec<String> {
    /// #     let mut items = source.list(ListOptions::default()).await.unwrap();
    /// #     let mut keys = Vec::new();
    /// #     while let Some(Ok(ListPart::Item(Decoded::Object(object)))) = items.next().await {
    /// #         keys.push(object.id().key.to_string());
    /// #     }
    /// #     keys
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # let map = |name| serde_json::json!({"metadata": {"name": name, "labels": {"app": name}}});
    /// # server.create("configmaps", Some("web"), map("a"))?;
    /// # server.create("configmaps", Some("web"), map("b"))?;
    /// # server.create("configmaps", Some("shop"), map("c"))?;
    /// # let client = server.client();
    /// use kube_client::core::{ApiResource, DynamicObject, GroupVersionKind};
    ///
    /// let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    /// let maps = KubeSource::<DynamicObject>::of(client, resource);
    /// assert_eq!(listed(maps).await, ["shop/c", "web/a", "web/b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn of(client: Client, resource: impl Into<ResourceType>) -> Self {
        Self {
            client,
            resource: resource.into(),
            selection: Selection::default(),
            metadata_only: false,
            managed_fields: ManagedFields::Skip,
            object_limit: DEFAULT_OBJECT_LIMIT,
            objects: PhantomData,
        }
    }

    /// Objects of one namespace only.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::object::Object;
    /// # use kube_informer::source::{Decoded, ListOptions, ListPart, ListWatch as _, kube::KubeSource};
    /// # async fn listed<T: Object>(source: KubeSource<T>) -> Vec<String> {
    /// #     let mut items = source.list(ListOptions::default()).await.unwrap();
    /// #     let mut keys = Vec::new();
    /// #     while let Some(Ok(ListPart::Item(Decoded::Object(object)))) = items.next().await {
    /// #         keys.push(object.id().key.to_string());
    /// #     }
    /// #     keys
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # let map = |name| serde_json::json!({"metadata": {"name": name, "labels": {"app": name}}});
    /// # server.create("configmaps", Some("web"), map("a"))?;
    /// # server.create("configmaps", Some("web"), map("b"))?;
    /// # server.create("configmaps", Some("shop"), map("c"))?;
    /// # let client = server.client();
    /// let maps = KubeSource::<ConfigMap>::new(client).namespace("web");
    /// assert_eq!(listed(maps).await, ["web/a", "web/b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.selection.namespace = Some(namespace.into());
        self
    }

    /// Objects that match a label selector only.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::object::Object;
    /// # use kube_informer::source::{Decoded, ListOptions, ListPart, ListWatch as _, kube::KubeSource};
    /// # async fn listed<T: Object>(source: KubeSource<T>) -> Vec<String> {
    /// #     let mut items = source.list(ListOptions::default()).await.unwrap();
    /// #     let mut keys = Vec::new();
    /// #     while let Some(Ok(ListPart::Item(Decoded::Object(object)))) = items.next().await {
    /// #         keys.push(object.id().key.to_string());
    /// #     }
    /// #     keys
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # let map = |name| serde_json::json!({"metadata": {"name": name, "labels": {"app": name}}});
    /// # server.create("configmaps", Some("web"), map("a"))?;
    /// # server.create("configmaps", Some("web"), map("b"))?;
    /// # server.create("configmaps", Some("shop"), map("c"))?;
    /// # let client = server.client();
    /// let maps = KubeSource::<ConfigMap>::new(client).labels("app in (b, c)");
    /// assert_eq!(listed(maps).await, ["shop/c", "web/b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.selection.labels = Some(selector.into());
        self
    }

    /// Objects that match a field selector only.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::object::Object;
    /// # use kube_informer::source::{Decoded, ListOptions, ListPart, ListWatch as _, kube::KubeSource};
    /// # async fn listed<T: Object>(source: KubeSource<T>) -> Vec<String> {
    /// #     let mut items = source.list(ListOptions::default()).await.unwrap();
    /// #     let mut keys = Vec::new();
    /// #     while let Some(Ok(ListPart::Item(Decoded::Object(object)))) = items.next().await {
    /// #         keys.push(object.id().key.to_string());
    /// #     }
    /// #     keys
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # let map = |name| serde_json::json!({"metadata": {"name": name, "labels": {"app": name}}});
    /// # server.create("configmaps", Some("web"), map("a"))?;
    /// # server.create("configmaps", Some("web"), map("b"))?;
    /// # server.create("configmaps", Some("shop"), map("c"))?;
    /// # let client = server.client();
    /// let maps = KubeSource::<ConfigMap>::new(client).fields("metadata.name=b");
    /// assert_eq!(listed(maps).await, ["web/b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.selection.fields = Some(selector.into());
        self
    }

    /// Sends one more query parameter with each request.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::object::Object;
    /// # use kube_informer::source::{Decoded, ListOptions, ListPart, ListWatch as _, kube::KubeSource};
    /// # async fn listed<T: Object>(source: KubeSource<T>) -> Vec<String> {
    /// #     let mut items = source.list(ListOptions::default()).await.unwrap();
    /// #     let mut keys = Vec::new();
    /// #     while let Some(Ok(ListPart::Item(Decoded::Object(object)))) = items.next().await {
    /// #         keys.push(object.id().key.to_string());
    /// #     }
    /// #     keys
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # let map = |name| serde_json::json!({"metadata": {"name": name, "labels": {"app": name}}});
    /// # server.create("configmaps", Some("web"), map("a"))?;
    /// # server.create("configmaps", Some("web"), map("b"))?;
    /// # server.create("configmaps", Some("shop"), map("c"))?;
    /// # let client = server.client();
    /// let maps = KubeSource::<ConfigMap>::new(client).query("pretty", "true");
    /// assert_eq!(listed(maps).await.len(), 3);
    /// assert!(server.requests()[0].query.contains("pretty=true"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.selection.extra.push((name.into(), value.into()));
        self
    }

    /// Asks the server for metadata only. The type must be one that needs no more, such as `PartialObjectMeta`.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::object::Object;
    /// # use kube_informer::source::{Decoded, ListOptions, ListPart, ListWatch as _, kube::KubeSource};
    /// # async fn listed<T: Object>(source: KubeSource<T>) -> Vec<String> {
    /// #     let mut items = source.list(ListOptions::default()).await.unwrap();
    /// #     let mut keys = Vec::new();
    /// #     while let Some(Ok(ListPart::Item(Decoded::Object(object)))) = items.next().await {
    /// #         keys.push(object.id().key.to_string());
    /// #     }
    /// #     keys
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # let map = |name| serde_json::json!({"metadata": {"name": name, "labels": {"app": name}}});
    /// # server.create("configmaps", Some("web"), map("a"))?;
    /// # server.create("configmaps", Some("web"), map("b"))?;
    /// # server.create("configmaps", Some("shop"), map("c"))?;
    /// # let client = server.client();
    /// use kube_client::core::metadata::PartialObjectMeta;
    /// # use kube_informer::object::Kind as _;
    ///
    /// let source = KubeSource::<PartialObjectMeta<ConfigMap>>::of(client, ConfigMap::resource_type());
    /// assert_eq!(listed(source.metadata_only()).await, ["shop/c", "web/a", "web/b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    /// Whether managed fields are decoded; they are not unless asked for.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::source::kube::KubeSource;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # let map = |name| serde_json::json!({"metadata": {"name": name, "labels": {"app": name}}});
    /// # server.create("configmaps", Some("web"), map("a"))?;
    /// # server.create("configmaps", Some("web"), map("b"))?;
    /// # server.create("configmaps", Some("shop"), map("c"))?;
    /// # let client = server.client();
    /// use kube_informer::{SharedInformer, object::ManagedFields};
    ///
    /// let fields = serde_json::json!([{"manager": "kubectl", "operation": "Apply", "fieldsType": "FieldsV1"}]);
    /// server.patch("configmaps", Some("web"), "a", serde_json::json!({"metadata": {"managedFields": fields}}))?;
    /// let source = KubeSource::<ConfigMap>::new(client).managed_fields(ManagedFields::Keep);
    /// let maps = SharedInformer::builder(source).build();
    /// maps.start()?;
    /// maps.synced().await?;
    /// assert!(maps.store().get("web/a").unwrap().metadata.managed_fields.is_some());
    /// maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn managed_fields(mut self, managed_fields: ManagedFields) -> Self {
        self.managed_fields = managed_fields;
        self
    }

    /// The largest object that is accepted, in bytes; see [`DEFAULT_OBJECT_LIMIT`].
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::source::{ListOptions, ListWatch as _, kube::KubeSource};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # let map = |name| serde_json::json!({"metadata": {"name": name, "labels": {"app": name}}});
    /// # server.create("configmaps", Some("web"), map("a"))?;
    /// # server.create("configmaps", Some("web"), map("b"))?;
    /// # server.create("configmaps", Some("shop"), map("c"))?;
    /// # let client = server.client();
    /// use kube_informer::source::SourceError;
    ///
    /// let source = KubeSource::<ConfigMap>::new(client).object_limit(64);
    /// let parts: Vec<_> = source.list(ListOptions::default()).await?.collect().await;
    /// assert!(matches!(parts.last(), Some(Err(SourceError::TooLarge { limit: 64 }))));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn object_limit(mut self, bytes: usize) -> Self {
        self.object_limit = bytes;
        self
    }

    pub(crate) fn select(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// The collection's address, with what to ask of it.
    fn uri(&self, query: &[(&str, Cow<'_, str>)]) -> String {
        let Selection { namespace, labels, fields, extra } = &self.selection;
        let path = self.resource.path(namespace.as_deref()) + "?";
        let start = path.len();
        let mut uri = form_urlencoded::Serializer::for_suffix(path, start);
        uri.extend_pairs(query);
        for (name, selector) in [("labelSelector", labels), ("fieldSelector", fields)] {
            if let Some(selector) = selector {
                uri.append_pair(name, selector);
            }
        }
        uri.extend_pairs(extra);
        uri.finish()
    }

    /// Sends a request and checks that the answer is what it should be.
    async fn get(&self, query: &[(&str, Cow<'_, str>)], accept: &'static str) -> Result<Body, SourceError> {
        let request = Request::get(self.uri(query))
            .header(header::ACCEPT, accept)
            // A compressed watch is many compressed pieces in a row, which common decoders take for an error.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Body::empty())
            .map_err(|error| SourceError::Request(error.to_string()))?;
        let response = self.client.send(request).await.map_err(|error| SourceError::Unreachable(Arc::new(error)))?;
        if !response.status().is_success() {
            return Err(SourceError::Status(read_status(response).await));
        }
        match content_type(&response) {
            Some(content_type) if !content_type.contains("json") => Err(SourceError::NotJson { content_type }),
            _ => Ok(response.into_body()),
        }
    }

    fn decoder(&self) -> Decoder<T> {
        let ResourceType { group, version, kind, .. } = &self.resource;
        let (api_version, kind) = match (self.metadata_only, group.as_str()) {
            (true, _) => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata".to_owned()),
            (false, "") => (version.clone(), kind.clone()),
            (false, group) => (format!("{group}/{version}"), kind.clone()),
        };
        Decoder { api_version, kind, managed_fields: self.managed_fields, objects: PhantomData }
    }

    fn expected_kind(&self) -> ExpectedKind {
        let group = self.resource.group.as_str();
        let list = if self.metadata_only { "PartialObjectMetadata" } else { &self.resource.kind };
        ExpectedKind { list: format!("{list}List"), strict: !group.contains('.') || group.ends_with(".k8s.io") }
    }
}

impl<T: Object> ListWatch<T> for KubeSource<T> {
    async fn list(&self, options: ListOptions) -> Result<Items<T>, SourceError> {
        let mut query: Vec<(&str, Cow<'_, str>)> = Vec::new();
        if options.limit > 0 {
            query.push(("limit", options.limit.to_string().into()));
        }
        if let Some(token) = &options.continue_token {
            query.push(("continue", token.into()));
        }
        if let Some(version) = &options.version {
            query.push(("resourceVersion", version.as_str().into()));
            if options.not_older_than {
                query.push(("resourceVersionMatch", "NotOlderThan".into()));
            }
        }
        let accept = match self.metadata_only {
            false => "application/json",
            true => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        };
        let body = self.get(&query, accept).await?;
        let splitter = Some(ItemSplitter::new(self.object_limit));
        let state = ListBody { body, splitter, expected: self.expected_kind(), decoder: self.decoder() };
        Ok(Items::new(stream::unfold(state, |mut state| async move {
            let part = state.next().await.transpose()?;
            if part.is_err() {
                state.splitter = None;
            }
            Some((part, state))
        })))
    }

    async fn list_identities(&self, options: ListOptions) -> Result<Items<Identity>, SourceError> {
        let Self { client, resource, selection, object_limit, .. } = self;
        let metadata = KubeSource::<Identity>::of(client.clone(), resource.clone()).select(selection.clone());
        metadata.metadata_only().object_limit(*object_limit).list(options).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<Events<T>, SourceError> {
        let mut query: Vec<(&str, Cow<'_, str>)> = vec![
            ("watch", "true".into()),
            ("allowWatchBookmarks", "true".into()),
            ("timeoutSeconds", options.timeout.as_secs().to_string().into()),
        ];
        if let Some(version) = &options.version {
            query.push(("resourceVersion", version.as_str().into()));
        }
        if options.initial_events {
            query.push(("sendInitialEvents", "true".into()));
            query.push(("resourceVersionMatch", "NotOlderThan".into()));
        }
        let accept = match self.metadata_only {
            false => "application/json",
            true => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        };
        let body = self.get(&query, accept).await?;
        let state = WatchBody { body: Some(body), lines: Lines::new(self.object_limit), decoder: self.decoder() };
        Ok(Events::new(stream::unfold(state, |mut state| async move {
            let event = state.next().await.transpose()?;
            if event.is_err() {
                state.body = None;
            }
            Some((event, state))
        })))
    }
}

/// The body of a list, being cut and decoded.
struct ListBody<T> {
    body: Body,
    /// `None` once the list has ended, well or badly.
    splitter: Option<ItemSplitter>,
    expected: ExpectedKind,
    decoder: Decoder<T>,
}

impl<T: Object> ListBody<T> {
    async fn next(&mut self) -> Result<Option<ListPart<T>>, SourceError> {
        loop {
            let Some(splitter) = &mut self.splitter else { return Ok(None) };
            if let Some(item) = splitter.next()? {
                return match self.decoder.object(&item) {
                    // A collection holds one kind: this is not the list that was asked for.
                    Decoded::Bad(BadObject { error: DecodeError::WrongKind { expected, got }, .. }) => {
                        Err(SourceError::WrongKind { expected, got: got.into_owned() })
                    }
                    item => Ok(Some(ListPart::Item(item))),
                };
            }
            match next_chunk(&mut self.body).await? {
                Some(chunk) => splitter.push(&chunk),
                None => {
                    let Some(splitter) = self.splitter.take() else { return Ok(None) };
                    let end = splitter.finish(&self.expected)?;
                    // A server always has one, and there is no safe way on without it.
                    let unversioned = || SourceError::NotAList("it has no resourceVersion".to_owned());
                    end.version.as_ref().ok_or_else(unversioned)?;
                    return Ok(Some(ListPart::End(end)));
                }
            }
        }
    }
}

/// The body of a watch, being cut and decoded.
struct WatchBody<T> {
    /// `None` once the watch has failed.
    body: Option<Body>,
    lines: Lines,
    decoder: Decoder<T>,
}

impl<T: Object> WatchBody<T> {
    async fn next(&mut self) -> Result<Option<WatchEvent<T>>, SourceError> {
        let Some(body) = &mut self.body else { return Ok(None) };
        loop {
            if let Some(line) = self.lines.next()? {
                return self.decoder.event(&line).map(Some);
            }
            match next_chunk(body).await? {
                Some(chunk) => self.lines.push(chunk),
                None if self.lines.is_at_line_end() => return Ok(None),
                None => return Err(SourceError::CutOff),
            }
        }
    }
}

async fn next_chunk(body: &mut Body) -> Result<Option<Bytes>, SourceError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| SourceError::Interrupted(Arc::new(error)))?;
        // Trailers are of no interest.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn content_type(response: &Response<Body>) -> Option<String> {
    let value = response.headers().get(header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

impl From<ApiResource> for ResourceType {
    fn from(resource: ApiResource) -> Self {
        let ApiResource { group, version, kind, plural, .. } = resource;
        Self { group, version, kind, plural }
    }
}

#[diagnostic::do_not_recommend]
impl<K> Object for K
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
{
    fn decode(raw: Raw<'_>) -> Result<Self, DecodeError> {
        raw.deserialize()
    }

    fn id(&self) -> Id<'_> {
        let meta = self.meta();
        Id {
            key: KeyRef::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default()),
            uid: meta.uid.as_deref().unwrap_or_default(),
            version: meta.resource_version.as_deref().unwrap_or_default(),
        }
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.meta().labels.as_ref()?.get(key).map(String::as_str)
    }
}

#[diagnostic::do_not_recommend]
impl<K> Kind for K
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Object,
{
    fn resource_type() -> ResourceType {
        ApiResource::erase::<K>(&()).into()
    }
}

impl<T> std::fmt::Debug for KubeSource<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeSource")
            .field("resource", &self.resource)
            .field("selection", &self.selection)
            .finish_non_exhaustive()
    }
}
