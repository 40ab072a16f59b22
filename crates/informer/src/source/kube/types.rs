//! The types of `kube` as objects: the one place that names them beside the requests.

use kube_core::{ApiResource, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::object::{Id, KeyRef, Object, Owner, ResourceType};
use crate::representation::{Decode, DecodeError, Kind, Raw};

impl From<ApiResource> for ResourceType {
    fn from(resource: ApiResource) -> Self {
        let ApiResource { group, version, kind, plural, .. } = resource;
        Self { group, version, kind, plural, namespaced: true }
    }
}

#[diagnostic::do_not_recommend]
impl<K> Object for K
where
    K: Resource + Serialize + DeserializeOwned + Send + Sync + 'static,
{
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

    fn annotation(&self, key: &str) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(key).map(String::as_str)
    }

    fn each_owner(&self, f: &mut dyn FnMut(Owner<'_>)) {
        for owner in self.meta().owner_references.iter().flatten() {
            f(Owner {
                api_version: &owner.api_version,
                kind: &owner.kind,
                name: &owner.name,
                uid: &owner.uid,
                controller: owner.controller.unwrap_or_default(),
            });
        }
    }

    fn generation(&self) -> Option<i64> {
        self.meta().generation
    }

    fn is_being_deleted(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    fn to_json(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self).ok()
    }
}

#[diagnostic::do_not_recommend]
impl<K> Decode for K
where
    K: Resource + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    /// A pod of 9 KB takes 46 KiB.
    const MEMORY_PER_WIRE_BYTE: f64 = 5.0;

    type Decoder = ();

    fn decoder(_: &ResourceType) {}

    fn decode((): &(), raw: &Raw<'_>) -> Result<Self, DecodeError> {
        raw.deserialize()
    }
}

#[diagnostic::do_not_recommend]
impl<K> Kind for K
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    fn resource_type() -> ResourceType {
        // kube names the scope by a type, and asks nothing of it.
        let namespaced = !std::any::type_name::<K::Scope>().ends_with("ClusterResourceScope");
        ResourceType { namespaced, ..ApiResource::erase::<K>(&()).into() }
    }
}
