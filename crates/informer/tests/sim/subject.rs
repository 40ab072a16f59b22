//! The representations that take part.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::View;
use kube_informer::representation::{Kind, Projection};

/// A config map, in whatever representation.
pub(crate) trait Subject: Kind {
    /// What it holds, as it is on the server.
    fn data(&self) -> Option<&BTreeMap<String, String>>;
}

impl Subject for ConfigMap {
    fn data(&self) -> Option<&BTreeMap<String, String>> {
        self.data.as_ref()
    }
}

/// What a view keeps.
#[derive(serde::Deserialize)]
pub(crate) struct Data {
    data: Option<BTreeMap<String, String>>,
}

impl Projection for Data {
    type Of = ConfigMap;
}

impl Subject for View<Data> {
    fn data(&self) -> Option<&BTreeMap<String, String>> {
        self.data.as_ref()
    }
}
