//! The representations that take part.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{Compact, InformerRequest, Projection, StaticResource, View};

/// Which of them a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    View,
    Compact,
}

/// A config map, in whatever representation.
pub(crate) trait Subject: StaticResource {
    /// What it holds, as it is on the server.
    fn data(&self) -> Option<BTreeMap<String, String>>;

    /// Asks for it in such a way that what cannot be read is told of when it comes.
    fn request() -> InformerRequest<Self> {
        InformerRequest::new()
    }
}

impl Subject for ConfigMap {
    fn data(&self) -> Option<BTreeMap<String, String>> {
        self.data.clone()
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
    fn data(&self) -> Option<BTreeMap<String, String>> {
        self.data.clone()
    }
}

impl Subject for Compact<ConfigMap> {
    fn data(&self) -> Option<BTreeMap<String, String>> {
        let data = self.decode().unwrap().data.clone();
        assert_eq!(self.get("/data").unwrap(), data, "both ways to read it say the same");
        data
    }

    fn request() -> InformerRequest<Self> {
        InformerRequest::new().transform("validated", Self::validate)
    }
}
