//! All resources of one server, by path or by name.

use std::sync::{Arc, LazyLock};

use super::resource::Resource;
use super::table;

static BUILT_IN: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(|| table::built_in().map(Arc::new).collect());

/// Returns whether a resource of this id is built in.
pub(crate) fn is_built_in(id: &str) -> bool {
    BUILT_IN.iter().any(|known| known.id == id)
}

/// The resources of one server. Built-in ones come first. Custom ones can be added and removed.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    resources: Vec<Arc<Resource>>,
    /// The number of changes so far.
    changes: u64,
}

impl Catalog {
    /// Returns a catalog of the built-in resources.
    pub(crate) fn built_in() -> Self {
        Self { resources: BUILT_IN.clone(), changes: 0 }
    }

    /// Replaces all versions of a resource; the storage version comes first.
    pub(crate) fn put(&mut self, versions: Vec<Resource>) {
        self.changes += 1;
        self.resources.retain(|known| versions.iter().all(|version| version.id != known.id));
        self.resources.extend(versions.into_iter().map(Arc::new));
    }

    /// Removes all versions of a resource.
    pub(crate) fn remove(&mut self, id: &str) {
        self.changes += 1;
        self.resources.retain(|known| known.id != id);
    }

    /// Returns the number of changes so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the resource at a path.
    pub(crate) fn at(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.served().find(|known| known.plural == plural && known.group == group && known.version == version)
    }

    /// Returns the resource named `pods`, or `deployments.apps` if the plural is ambiguous.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Resource>> {
        let by_id = self.resources.iter().find(|known| known.id == name);
        by_id.or_else(|| self.resources.iter().find(|known| known.plural == name))
    }

    /// Returns the storage version of the resource of the CRD with this name.
    pub(crate) fn of_definition(&self, name: &str) -> Option<&Arc<Resource>> {
        self.resources.iter().find(|known| known.rules.custom && known.id == name)
    }

    /// Returns the resource with objects in this collection.
    pub(crate) fn stored_in(&self, collection: &str) -> Option<&Arc<Resource>> {
        self.resources.iter().find(|known| known.storage == collection && known.rules.view.is_none())
    }

    /// Returns whether any resource is served in this group and version.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.served().any(|known| known.group == group && known.version == version)
    }

    /// Returns all served resources, built-in ones first.
    pub(crate) fn served(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter().filter(|known| known.served)
    }

    /// Returns all resources, built-in ones first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_resource_is_found_by_path_and_name() {
        let catalog = Catalog::built_in();
        for resource in catalog.iter() {
            let found = catalog.at(&resource.group, &resource.version, &resource.plural);
            assert_eq!(found.map(|found| &found.id), Some(&resource.id));
            assert_eq!(catalog.named(&resource.id).map(|found| &found.kind), Some(&resource.kind));
        }
        assert_eq!(catalog.named("deployments").map(|found| found.id.as_str()), Some("deployments.apps"));
        assert!(catalog.serves("batch", "v1"));
        assert!(!catalog.serves("batch", "v2"));
    }
}
