//! The request of one informer.

use std::fmt;
use std::sync::Arc;

use crate::object::Object;
use crate::settings::{InformerOptions, Selection};
use crate::source::feed::Transform;

/// The selection, options and transform of one informer. A part that is not set comes from the factory.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{InformerOptions, InformerRequest, Selection, SharedInformerFactory};
/// # doc_server::with(async |server| {
/// # let client = server.client();
/// let factory = SharedInformerFactory::new(client);
/// let request = InformerRequest::<ConfigMap>::new()
///     .select(Selection::new().namespace("web")?.labels("app=shop")?)
///     .options(InformerOptions::new().resync_period(Duration::from_secs(600)))
///     .transform("without binary data", |mut map: ConfigMap| {
///         map.binary_data = None;
///         Ok::<_, String>(map)
///     });
/// let shop = factory.informer_with(request)?;
/// # Ok(()) });
/// ```
pub struct InformerRequest<T> {
    pub(super) selection: Selection,
    pub(super) options: InformerOptions,
    pub(super) transform: Option<(String, Transform<T>)>,
    pub(super) name: Option<String>,
}

impl<T: Object> InformerRequest<T> {
    /// Makes a request that sets nothing.
    pub fn new() -> Self {
        Self { selection: Selection::new(), options: InformerOptions::new(), transform: None, name: None }
    }

    /// Sets which objects the informer requests.
    #[must_use]
    pub fn select(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Sets how the informer lists and watches, and how it keeps objects.
    #[must_use]
    pub fn options(mut self, options: InformerOptions) -> Self {
        self.options = options;
        self
    }

    /// Accepts that the API server does not serve the resource; see
    /// [`InformerOptions::optional`].
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.options = self.options.optional(true);
        self
    }

    /// Sets a function that changes every object once, after it is decoded. Functions cannot be compared, so requests
    /// with the same *name* share an informer, which uses the function of the first request.
    ///
    /// The function must not change name, namespace, uid and version. If it fails, the object counts as one that could
    /// not be decoded: its last known state stays, and the error is reported.
    #[must_use]
    pub fn transform<F, E>(mut self, name: impl Into<String>, transform: F) -> Self
    where
        F: Fn(T) -> Result<T, E> + Send + Sync + 'static,
        E: fmt::Display,
    {
        self.transform =
            Some((name.into(), Arc::new(move |object| transform(object).map_err(|error| error.to_string()))));
        self
    }

    /// Sets the name in logs, messages and metrics. The default is that of the resource.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns this request, with the parts of `other` that this one does not set.
    pub(super) fn or(self, other: &Self) -> Self {
        Self {
            selection: self.selection.or(&other.selection),
            options: self.options.or(&other.options),
            transform: self.transform.or_else(|| other.transform.clone()),
            name: self.name.or_else(|| other.name.clone()),
        }
    }
}

impl<T: Object> Default for InformerRequest<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for InformerRequest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerRequest")
            .field("selection", &self.selection)
            .field("options", &self.options)
            .field("transform", &self.transform.as_ref().map(|(name, _)| name))
            .finish_non_exhaustive()
    }
}
