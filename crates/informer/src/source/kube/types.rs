//! The types of `kube` as objects: the only module besides the requests that names them.

use std::any::{Any, TypeId};

use kube_core::{ApiResource, ClusterResourceScope, DynamicObject, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::object::{Id, KeyRef, Object, Owner, ResourceType, finalizer_set};
use crate::representation::{Decode, DecodeError, Raw, StaticResource};

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

    fn finalizer_set(&self) -> Option<u32> {
        Some(finalizer_set(self.meta().finalizers.iter().flatten().map(String::as_str)))
    }

    fn is_of_kind(&self, resource: &ResourceType) -> Option<bool> {
        let same = |group: &str, kind: &str| group == resource.group && kind == resource.kind;
        if let Some(object) = (self as &dyn Any).downcast_ref::<DynamicObject>() {
            let types = object.types.as_ref()?;
            let group = types.api_version.split_once('/').map_or("", |(group, _)| group);
            return Some(same(group, &types.kind));
        }
        // Types with a fixed kind have no dynamic type.
        let fixed = (&() as &dyn Any).downcast_ref::<K::DynamicType>()?;
        Some(same(&K::group(fixed), &K::kind(fixed)))
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
impl<K> StaticResource for K
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    fn resource_type() -> ResourceType {
        ResourceType { namespaced: is_namespaced::<K::Scope>(), ..ApiResource::erase::<K>(&()).into() }
    }
}

/// Returns false for the scope type of cluster-scoped resources.
fn is_namespaced<S: 'static>() -> bool {
    TypeId::of::<S>() != TypeId::of::<ClusterResourceScope>()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use k8s_openapi::api::events::v1::Event;

    use super::*;

    #[test]
    fn only_the_cluster_scope_of_kube_is_not_namespaced() {
        struct NonClusterResourceScope;
        assert!(is_namespaced::<NonClusterResourceScope>());
        assert!(is_namespaced::<kube_core::NamespaceResourceScope>());
        assert!(!is_namespaced::<kube_core::ClusterResourceScope>());
        assert!(ConfigMap::resource_type().namespaced);
    }

    #[test]
    fn an_object_tells_whether_it_is_of_a_kind() {
        let maps = ConfigMap::resource_type();
        assert_eq!(ConfigMap::default().is_of_kind(&maps), Some(true));
        assert_eq!(Secret::default().is_of_kind(&maps), Some(false));
        let core = ResourceType { group: String::new(), ..Event::resource_type() };
        assert_eq!(Event::default().is_of_kind(&core), Some(false), "another group");
        let dynamic = DynamicObject::new("a", &ApiResource::erase::<ConfigMap>(&()));
        assert_eq!((dynamic.is_of_kind(&maps), dynamic.is_of_kind(&core)), (Some(true), Some(false)));
        let unknown = DynamicObject { types: None, ..dynamic };
        assert_eq!(unknown.is_of_kind(&maps), None);
    }
}
