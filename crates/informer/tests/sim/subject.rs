//! The representations that the simulation tests.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{Compact, InformerRequest, Projection, StaticResource, View};

/// The representation of objects in a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    View,
    Compact,
}

/// A config map in some representation.
pub(crate) trait Subject: StaticResource {
    /// Returns the data of the object as the server has it.
    fn data(&self) -> Option<BTreeMap<String, String>>;

    /// Returns a request with which an undecodable object is reported on arrival.
    fn request() -> InformerRequest<Self> {
        InformerRequest::new()
    }
}

impl Subject for ConfigMap {
    fn data(&self) -> Option<BTreeMap<String, String>> {
        self.data.clone()
    }
}

/// The fields that the view keeps.
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
        assert_eq!(self.get("/data").unwrap(), data, "both ways to read the data agree");
        data
    }

    fn request() -> InformerRequest<Self> {
        InformerRequest::new().transform("validated", Self::validate)
    }
}
