//! What one informer is asked for with.

use std::fmt;
use std::sync::Arc;

use crate::object::Object;
use crate::settings::{InformerOptions, Selection};
use crate::source::feed::Transform;

/// What one informer is asked for with, beside its kind. What is not said falls to the factory's defaults.
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
    /// As if nothing had been said.
    pub fn new() -> Self {
        Self { selection: Selection::new(), options: InformerOptions::new(), transform: None, name: None }
    }

    /// Which objects, and how much of them.
    #[must_use]
    pub fn select(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// How they are asked for, and how they are kept.
    #[must_use]
    pub fn options(mut self, options: InformerOptions) -> Self {
        self.options = options;
        self
    }

    /// Changes every object on its way in, once. Functions cannot be compared, so that requests with the same *name* share
    /// an informer, and get the function that came first.
    ///
    /// It must leave name, namespace, uid and version alone. What it fails on is treated like an object that could not be
    /// decoded: the last good copy stays, and the error is reported.
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

    /// The name that logs, messages and metrics use; that of the resource unless given.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// This, and another where nothing was said.
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
