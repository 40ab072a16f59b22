//! Whether the API server serves a resource, and when that changes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use http::{Request, header};
use http_body_util::{BodyExt as _, Limited};
use kube_client::Client;
use kube_client::client::Body;
use serde::de::DeserializeOwned;

use super::KubeSource;
use super::status::read_status;
use crate::object::ResourceType;
use crate::representation::{Decode, Identity};
use crate::settings::Selection;
use crate::source::{ListOptions, ListPart, ListWatch, SourceError, WatchEvent, WatchOptions};

/// The largest answer that is read.
const ANSWER_LIMIT: usize = 4 * 1024 * 1024;
/// The timeout of a watch on a CRD.
const WATCH: Duration = Duration::from_secs(300);

#[derive(serde::Deserialize)]
struct ApiResourceList {
    resources: Vec<ApiResourceEntry>,
}

#[derive(serde::Deserialize)]
struct ApiResourceEntry {
    name: String,
}

#[derive(serde::Deserialize)]
struct ApiGroupList {
    kind: String,
    groups: Vec<ApiGroupEntry>,
}

#[derive(serde::Deserialize)]
struct ApiGroupEntry {
    name: String,
    versions: Vec<ApiVersionEntry>,
}

#[derive(serde::Deserialize)]
struct ApiVersionEntry {
    version: String,
}

/// Returns false if the API server certainly does not serve a resource. A proxy that answers every request with "not
/// found" is not certain.
pub(super) async fn is_served(client: &Client, resource: &ResourceType) -> Result<bool, SourceError> {
    let ResourceType { group, version, plural, .. } = resource;
    let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    match get::<ApiResourceList>(client, &path).await {
        Ok(list) => return Ok(list.resources.iter().any(|entry| entry.name == *plural)),
        Err(error) if error.has_code(&[404]) => {}
        Err(error) => return Err(error),
    }
    let list: ApiGroupList = get(client, "/apis").await?;
    if list.kind != "APIGroupList" {
        return Err(SourceError::WrongKind { expected: "APIGroupList".to_owned(), got: list.kind });
    }
    let has_version = |entry: &ApiGroupEntry| entry.versions.iter().any(|entry| entry.version == *version);
    Ok(list.groups.iter().any(|entry| entry.name == *group && has_version(entry)))
}

async fn get<A: DeserializeOwned>(client: &Client, path: &str) -> Result<A, SourceError> {
    let request = Request::get(path)
        .header(header::ACCEPT, "application/json")
        .body(Body::empty())
        .map_err(|error| SourceError::Request(error.to_string()))?;
    let response = client.send(request).await.map_err(|error| SourceError::Unreachable(Arc::new(error)))?;
    if !response.status().is_success() {
        return Err(SourceError::Status(read_status(response).await));
    }
    let body = Limited::new(response.into_body(), ANSWER_LIMIT).collect().await;
    let body = body.map_err(|error| SourceError::Interrupted(Arc::from(error)))?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| SourceError::NotAList(error.to_string()))
}

impl<T: Decode> KubeSource<T> {
    /// Waits until the CRD of the resource exists, or changes.
    pub(super) async fn until_crd_changes(&self) -> Result<(), SourceError> {
        if !self.resource.is_custom() {
            return Err(SourceError::Request(format!("{} has no CRD", self.resource)));
        }
        let crds = self.crds();
        let mut list = crds.list(ListOptions::default()).await?;
        let mut version = None;
        while let Some(part) = list.next().await {
            match part? {
                // It exists, but the API server does not serve the resource yet.
                ListPart::Item(_) => return Ok(()),
                ListPart::End(end) => version = end.version,
            }
        }
        let mut watch = crds.watch(WatchOptions { version, initial_events: false, timeout: WATCH }).await?;
        while let Some(event) = watch.next().await {
            if !matches!(event?, WatchEvent::Bookmark { .. }) {
                break;
            }
        }
        Ok(())
    }

    /// Returns a source of the CRD of the resource, without its schema.
    fn crds(&self) -> KubeSource<Identity> {
        let resource = ResourceType {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            plural: "customresourcedefinitions".to_owned(),
            namespaced: false,
        };
        let name = format!("metadata.name={}.{}", self.resource.plural, self.resource.group);
        let selection = Selection { fields: Some(name), ..Selection::new() };
        KubeSource { resource, selection, namespace: None, ..self.identities() }
    }
}
