//! Keys, objects and changes in the caches, as JSON.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use kube_informer::{AnyInformer, ObjectKey};

use crate::answer::{Json, Refusal};
use crate::model::{History, Keys, Object, Values};
use crate::parameters::{Parameters, page};
use crate::state::InspectionState;

/// The only index that contains no data of Secrets.
const NAMESPACE: &str = "namespace";

pub(crate) async fn keys(
    State(shown): State<Arc<InspectionState>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Keys>, Refusal> {
    let informer = shown.informer(&id)?;
    let mut parameters = Parameters::of(&uri);
    let (index, value) = (parameters.take("index"), parameters.take("value"));
    let (prefix, after, limit) =
        (parameters.take("prefix").unwrap_or_default(), parameters.take("after"), parameters.limit()?);
    parameters.end()?;
    let by_index = match (index, value) {
        (None, None) => None,
        (Some(index), Some(value)) => Some((known_index(&informer, index)?, value)),
        _ => {
            let hint = "write `?index=node&value=worker-7`, or leave out both";
            return Err(Refusal::bad("`index` and `value` go together", hint));
        }
    };
    let found = blocking(move || {
        let all = match by_index {
            Some((index, value)) => informer.keys_by_index(&index, &value),
            None => informer.keys(),
        };
        let all: Vec<&str> = all.iter().map(ObjectKey::as_str).collect();
        page(&all, &prefix, after.as_deref(), limit)
    });
    let (keys, total, next) = found.await?;
    Ok(Json::ok(Keys { keys, total, next }))
}

pub(crate) async fn values(
    State(shown): State<Arc<InspectionState>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Values>, Refusal> {
    let informer = shown.informer(&id)?;
    let mut parameters = Parameters::of(&uri);
    let index = parameters.require("index", NAMESPACE)?;
    let (prefix, after, limit) =
        (parameters.take("prefix").unwrap_or_default(), parameters.take("after"), parameters.limit()?);
    parameters.end()?;
    let index = known_index(&informer, index)?;
    let asked = index.clone();
    let found = blocking(move || page(&informer.index_values(&asked), &prefix, after.as_deref(), limit));
    let (values, total, next) = found.await?;
    Ok(Json::ok(Values { index, values, total, next }))
}

pub(crate) async fn object(
    State(shown): State<Arc<InspectionState>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Object>, Refusal> {
    let informer = shown.informer(&id)?;
    let key = key_of(&uri)?;
    match informer.object(&key) {
        Some(object) => Ok(Json::ok(Object { key: key.to_string(), object })),
        None if informer.contains(&key) => Err(Refusal::missing(
            format!("{key} is kept in a form that cannot be written as JSON"),
            "only its key and its indexes can be shown",
        )),
        None => Err(Refusal::missing(
            format!("the cache of {id} does not hold {key}"),
            "it may be deleted; `history` has its recorded changes",
        )),
    }
}

pub(crate) async fn history(
    State(shown): State<Arc<InspectionState>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<History>, Refusal> {
    let informer = shown.informer(&id)?;
    let key = key_of(&uri)?;
    let recorded = shown.recorder.history(&informer, key.as_str());
    Ok(Json::ok(blocking(move || recorded.compared()).await?))
}

/// Returns the indexes that may be used for an informer's objects.
pub(crate) fn indexes(informer: &AnyInformer) -> Vec<String> {
    let names = informer.index_names().into_iter().map(|name| name.to_string());
    names.filter(|name| !holds_secrets(informer) || name == NAMESPACE).collect()
}

fn holds_secrets(informer: &AnyInformer) -> bool {
    // An informer that was built from a list-watch may not know its resource.
    informer.resource().is_none_or(|resource| resource.is_secret())
}

fn known_index(informer: &AnyInformer, index: String) -> Result<String, Refusal> {
    let shown = indexes(informer);
    if shown.contains(&index) {
        return Ok(index);
    }
    if informer.index_names().iter().any(|name| **name == *index) {
        let why = "an index may contain data of Secrets, which is never shown; use the index `namespace`";
        return Err(Refusal::forbidden(format!("index {index:?} is not shown"), why));
    }
    let hint = match shown.as_slice() {
        [] => "it has no index; leave out `index`".to_owned(),
        shown => format!("its indexes are: {}", shown.join(", ")),
    };
    Err(Refusal::missing(format!("{} has no index {index:?}", informer.name()), hint))
}

fn key_of(uri: &Uri) -> Result<ObjectKey, Refusal> {
    let mut parameters = Parameters::of(uri);
    let key = parameters.require("key", "web/frontend")?;
    parameters.end()?;
    key.parse().map_err(|error| Refusal::bad(format!("{error}"), "write `?key=namespace/name`, or only the name"))
}

/// Runs work on a thread for blocking tasks, because it takes long for a large cache.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the cache could not be read", "try again"))
}
