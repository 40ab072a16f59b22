//! Watches: the options of a request, and the stream that answers it.

mod options;
mod stream;

pub(crate) use options::{Start, WatchQuery};

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream as streams;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

use crate::api::list::wait_until_fresh;
use crate::api::selector::ObjectSelector;
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::message::reply::error_line;
use crate::status::Status;
use crate::storage::object::Form;

/// The shortest and longest default timeout of a watch, in seconds.
const DEFAULT_TIMEOUT: std::ops::Range<u64> = 1800..3600;

/// Longer than any process lives, and short enough that a deadline does not overflow.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Opens a watch. The watch runs only while the client polls it, so it needs no task.
///
/// A version that is too old or too new is reported in the stream, as in kube-apiserver.
pub(crate) async fn watch(
    hub: &Arc<Hub>,
    resource: &Arc<Resource>,
    selector: ObjectSelector,
    options: &WatchQuery,
    form: Form,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let timeout = options.timeout.unwrap_or_else(|| Duration::from_secs(hub.chance.within(DEFAULT_TIMEOUT)));
    let deadline = Instant::now() + timeout.min(LONGEST);
    if let Start::Initial { not_older_than: Some(revision), .. } = options.start
        && let Err(status) = wait_until_fresh(hub, revision).await
    {
        return streams::unfold(Opened::Refused(Some(status)), Opened::step);
    }
    let opened = match stream::WatchLines::open(hub, resource, selector, options, form, deadline) {
        Ok(stream) => Opened::Live(Box::new(stream)),
        Err(status) => Opened::Refused(Some(status)),
    };
    streams::unfold(opened, Opened::step)
}

/// An open watch, or a watch that only returns an error.
enum Opened {
    Live(Box<stream::WatchLines>),
    Refused(Option<Status>),
}

impl Opened {
    async fn step(mut self) -> Option<(io::Result<Bytes>, Self)> {
        let item = match &mut self {
            Self::Live(stream) => stream.next().await,
            Self::Refused(status) => status.take().map(|status| Ok(error_line(&status))),
        };
        item.map(|item| (item, self))
    }
}

/// The properties of a bookmark beside its version.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BookmarkMark {
    /// The bookmark ends the initial events.
    pub(crate) ends_initial_events: bool,
    /// The bookmark shows a null creation time, as servers before 1.34 do.
    pub(crate) null_creation: bool,
}

/// Returns a `BOOKMARK` event: an empty object of the kind with only a version.
pub(crate) fn bookmark_line(resource: &Resource, form: Form, revision: u64, mark: BookmarkMark) -> Bytes {
    let annotations =
        if mark.ends_initial_events { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
    let created = if mark.null_creation { r#","creationTimestamp":null"# } else { "" };
    let (kind, api_version, rest) = match form {
        Form::Full => (resource.kind.as_str(), resource.api_version(), resource.rules.empty),
        Form::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned(), ""),
    };
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\
         \"metadata\":{{\"resourceVersion\":\"{revision}\"{created}{annotations}}}{rest}}}}}\n"
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Catalog;

    #[test]
    fn bookmark_is_an_empty_object_with_a_version() {
        let catalog = Catalog::built_in();
        let line = bookmark_line(
            catalog.named("configmaps").unwrap(),
            Form::Full,
            9,
            BookmarkMark { ends_initial_events: true, null_creation: false },
        );
        let expected = concat!(
            r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"9","#,
            r#""annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
            "\n"
        );
        assert_eq!(line, expected);
        let line = bookmark_line(catalog.named("pods").unwrap(), Form::Full, 12746, BookmarkMark::default());
        let expected = concat!(
            r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12746"},"#,
            r#""spec":{"containers":null},"status":{}}}"#,
            "\n"
        );
        assert_eq!(line, expected);
    }
}
