//! The source over a [`kube_client::Client`]: requests and responses.
//!
//! This is the only module that sends requests to an API server. It requests JSON without compression, reads the raw
//! body, and decodes each object once. It also accepts compressed JSON, and JSON with another content type.

mod chunks;
mod decode;
mod discovery;
mod status;
mod types;

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::stream;
use http::{Request, header};
use kube_client::Client;
use kube_client::client::Body;

use self::chunks::BodyChunks;
use self::decode::ObjectReader;
use self::status::read_status;
use super::items::{ExpectedKind, ItemSplitter};
use super::lines::{LinePiece, Lines};
use super::{
    BadObject, ByteMeter, Decoded, ListOptions, ListPart, ListStream, ListWatch, SourceError, WatchEvent, WatchOptions,
    WatchStream,
};
use crate::object::{ResourceType, ResourceVersion};
use crate::representation::{Decode, DecodeError, Identity, ManagedFields, StaticResource, Types};
use crate::settings::{InformerOptions, Selection, SelectionError};

/// The default limit of the size of an object: 32 MiB.
const OBJECT_LIMIT: usize = 32 * 1024 * 1024;

/// Lists and watches one collection of an API server.
///
/// A factory makes its sources itself. Make one by hand for a [`Reflector`](crate::parts::Reflector), or for an
/// informer that is not shared:
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Selection, SharedInformer};
/// use kube_informer::parts::KubeSource;
/// # doc_server::with(async |server| {
/// let shop = Selection::new().namespace("web")?.labels("app=shop")?;
/// let source = KubeSource::<ConfigMap>::new(server.client()).select(shop)?;
/// let maps = SharedInformer::builder(source).build();
/// # Ok(()) });
/// ```
pub struct KubeSource<T: Decode> {
    client: Client,
    resource: ResourceType,
    selection: Selection,
    namespace: Option<String>,
    metadata_only: bool,
    object_limit: usize,
    decoder: Arc<T::Decoder>,
}

impl<T: StaticResource> KubeSource<T> {
    /// Makes a source of all objects of a kind, in all namespaces.
    pub fn new(client: Client) -> Self {
        Self::of(client, T::resource_type())
    }
}

impl<T: Decode> KubeSource<T> {
    /// Makes a source of all objects of a collection that is known only at run time.
    pub fn of(client: Client, resource: impl Into<ResourceType>) -> Self {
        let resource = resource.into();
        let decoder = Arc::new(T::decoder(&resource));
        Self::with_decoder(client, resource, decoder)
    }

    /// Makes a source with a decoder that other sources share.
    pub(crate) fn with_decoder(client: Client, resource: ResourceType, decoder: Arc<T::Decoder>) -> Self {
        Self {
            client,
            resource,
            selection: Selection::new(),
            namespace: None,
            metadata_only: false,
            object_limit: OBJECT_LIMIT,
            decoder,
        }
    }

    /// Restricts the source to a selection.
    ///
    /// # Errors
    ///
    /// [`SelectionError::ManyNamespaces`] if the selection has several namespaces: each needs its own source.
    pub fn select(mut self, selection: Selection) -> Result<Self, SelectionError> {
        self.namespace = selection.one_namespace()?.filter(|_| self.resource.namespaced).map(ToOwned::to_owned);
        self.selection = selection;
        Ok(self)
    }

    /// Restricts the source to a selection, but with this namespace in place of its namespaces; `None` means all.
    pub(crate) fn in_namespace(mut self, selection: Selection, namespace: Option<&str>) -> Self {
        self.namespace = namespace.map(ToOwned::to_owned);
        self.selection = Selection { namespaces: namespace.map(|namespace| vec![namespace.to_owned()]), ..selection };
        self
    }

    /// Takes the object limit from these options. The informer uses all other options.
    #[must_use]
    pub fn options(mut self, options: &InformerOptions) -> Self {
        self.object_limit = options.object_limit.unwrap_or(OBJECT_LIMIT);
        self
    }

    /// Requests only metadata from the API server. The type must need no more, such as `PartialObjectMeta`.
    #[must_use]
    pub fn metadata_only(self) -> Self {
        self.restricted(true)
    }

    /// Sets whether only metadata is requested.
    pub(crate) fn restricted(self, metadata_only: bool) -> Self {
        Self { metadata_only, ..self }
    }

    fn uri(&self, query: &[(&str, Cow<'_, str>)]) -> String {
        let Selection { labels, fields, query: extra, .. } = &self.selection;
        let path = self.resource.path(self.namespace.as_deref()) + "?";
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

    async fn get(&self, query: &[(&str, Cow<'_, str>)], accept: &'static str) -> Result<BodyChunks, SourceError> {
        let request = Request::get(self.uri(query))
            .header(header::ACCEPT, accept)
            // A compressed watch is a series of gzip members, which common decoders refuse.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Body::empty())
            .map_err(|error| SourceError::Request(error.to_string()))?;
        let response = self.client.send(request).await.map_err(|error| SourceError::Unreachable(Arc::new(error)))?;
        if !response.status().is_success() {
            let mut status = read_status(response).await;
            if status.code == 404 && self.resource.is_custom() {
                status.message += &format!("; is the CRD or the aggregated API server of {} installed?", self.resource);
            }
            return Err(SourceError::Status(status));
        }
        BodyChunks::of(response)
    }

    fn reader(&self) -> ObjectReader<T> {
        let ResourceType { kind, .. } = &self.resource;
        let (api_version, kind) = match self.metadata_only {
            true => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata".to_owned()),
            false => (self.resource.api_version(), kind.clone()),
        };
        let managed_fields = self.selection.managed_fields.unwrap_or(ManagedFields::Skip);
        ObjectReader {
            types: Types::new(api_version, kind),
            managed_fields,
            decoder: self.decoder.clone(),
            buffer: String::new(),
        }
    }

    fn expected_kind(&self) -> ExpectedKind {
        let list = if self.metadata_only { "PartialObjectMetadata" } else { &self.resource.kind };
        // The list of a custom resource may have any kind.
        ExpectedKind { list: format!("{list}List"), strict: !self.resource.is_custom() }
    }

    /// Returns a source of the same collection that requests only metadata.
    fn identities(&self) -> KubeSource<Identity> {
        KubeSource {
            client: self.client.clone(),
            resource: self.resource.clone(),
            selection: Selection { managed_fields: None, ..self.selection.clone() },
            namespace: self.namespace.clone(),
            metadata_only: true,
            object_limit: self.object_limit,
            decoder: Arc::new(()),
        }
    }
}

impl<T: Decode> ListWatch<T> for KubeSource<T> {
    async fn list(&self, options: ListOptions) -> Result<ListStream<T>, SourceError> {
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
        let (body, meter) = (self.get(&query, accept).await?, ByteMeter::default());
        let splitter = Some(ItemSplitter::new(self.object_limit));
        let (expected, reader) = (self.expected_kind(), self.reader());
        let limit = self.object_limit;
        let state = ListBody { body, splitter, expected, reader, limit, meter: meter.clone() };
        let parts = stream::unfold(state, |mut state| async move {
            let part = state.next().await.transpose()?;
            if part.is_err() {
                state.splitter = None;
            }
            Some((part, state))
        });
        Ok(ListStream::metered(parts, meter))
    }

    fn resource_type(&self) -> Option<ResourceType> {
        Some(self.resource.clone())
    }

    async fn is_served(&self) -> Result<bool, SourceError> {
        discovery::is_served(&self.client, &self.resource).await
    }

    async fn until_defined(&self) -> Result<(), SourceError> {
        self.until_crd_changes().await
    }

    async fn list_identities(&self, options: ListOptions) -> Result<ListStream<Identity>, SourceError> {
        self.identities().list(options).await
    }

    async fn newest_version(&self) -> Result<Option<ResourceVersion>, SourceError> {
        let selected = self.identities();
        // If few objects match a selector, the API server may scan the whole collection for the first match. Any object
        // has the version.
        let any = Selection { query: selected.selection.query.clone(), ..Selection::new() };
        // A user who may only read one object by name can only send that request, and it is cheap.
        let by_name = selected.selection.fields.as_deref().is_some_and(|fields| fields.contains("metadata.name="));
        let one = ListOptions { limit: 1, ..ListOptions::default() };
        if !by_name && any != selected.selection {
            let unselected = KubeSource { selection: any, ..self.identities() };
            match unselected.list(one.clone()).await {
                // The user may be allowed to list with these selectors only.
                Err(error) if error.is_refusal() => {}
                answer => return answer?.version().await,
            }
        }
        selected.list(one).await?.version().await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<T>, SourceError> {
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
        let (body, meter) = (self.get(&query, accept).await?, ByteMeter::default());
        let lines = Lines::new(self.object_limit);
        let (reader, limit) = (self.reader(), self.object_limit);
        let state = WatchBody { body: Some(body), lines, reader, limit, meter: meter.clone() };
        let events = stream::unfold(state, |mut state| async move {
            let event = state.next().await.transpose()?;
            if event.is_err() {
                state.body = None;
            }
            Some((event, state))
        });
        Ok(WatchStream::metered(events, meter))
    }
}

/// The body of a list, split into items.
struct ListBody<T: Decode> {
    body: BodyChunks,
    /// `None` at the end of the body.
    splitter: Option<ItemSplitter>,
    expected: ExpectedKind,
    reader: ObjectReader<T>,
    limit: usize,
    meter: ByteMeter,
}

impl<T: Decode> ListBody<T> {
    async fn next(&mut self) -> Result<Option<ListPart<T>>, SourceError> {
        loop {
            let Some(splitter) = &mut self.splitter else { return Ok(None) };
            if let Some(item) = splitter.next()? {
                let item = match item {
                    LinePiece::Whole(item) => self.reader.object(&item),
                    LinePiece::TooLarge { beginning } => self.reader.too_large(&beginning, self.limit),
                };
                return match item {
                    // A collection holds objects of one kind, so this is not the requested list.
                    Decoded::Bad(BadObject { error: DecodeError::WrongKind { expected, got }, .. }) => {
                        Err(SourceError::WrongKind { expected, got })
                    }
                    item => Ok(Some(ListPart::Item(item))),
                };
            }
            match self.body.next(&self.meter).await? {
                Some(chunk) => splitter.push(chunk),
                None => {
                    let Some(splitter) = self.splitter.take() else { return Ok(None) };
                    let end = splitter.finish(&self.expected)?;
                    // kube-apiserver always sends a version, and a reflector cannot watch without one.
                    let unversioned = || SourceError::NotAList("it has no resourceVersion".to_owned());
                    end.version.as_ref().ok_or_else(unversioned)?;
                    return Ok(Some(ListPart::End(end)));
                }
            }
        }
    }
}

/// The body of a watch, split into lines.
struct WatchBody<T: Decode> {
    /// `None` at the end of the body.
    body: Option<BodyChunks>,
    lines: Lines,
    reader: ObjectReader<T>,
    limit: usize,
    meter: ByteMeter,
}

impl<T: Decode> WatchBody<T> {
    async fn next(&mut self) -> Result<Option<WatchEvent<T>>, SourceError> {
        let Some(body) = &mut self.body else { return Ok(None) };
        loop {
            match self.lines.next()? {
                Some(LinePiece::Whole(line)) => return self.reader.event(&line).map(Some),
                Some(LinePiece::TooLarge { beginning }) => {
                    return self.reader.too_large_event(&beginning, self.limit).map(Some);
                }
                None => {}
            }
            self.meter.set_within(!self.lines.is_at_line_end());
            match body.next(&self.meter).await? {
                Some(chunk) => self.lines.push(chunk),
                None if self.lines.is_at_line_end() => return Ok(None),
                None => return Err(SourceError::CutOff),
            }
        }
    }
}

impl<T: Decode> std::fmt::Debug for KubeSource<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeSource")
            .field("resource", &self.resource)
            .field("selection", &self.selection)
            .finish_non_exhaustive()
    }
}
