//! All resources one server offers, found by path or by name.

use std::sync::{Arc, LazyLock};

use super::resource::Resource;
use super::table;

static BUILT_IN: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(|| table::built_in().map(Arc::new).collect());

/// Whether a resource of this id is there whatever is defined.
pub(crate) fn is_built_in(id: &str) -> bool {
    BUILT_IN.iter().any(|known| known.id == id)
}

/// The resources of one server. Built-in ones come first; custom ones come and go.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    resources: Vec<Arc<Resource>>,
    /// How often it has changed.
    changes: u64,
}

impl Catalog {
    /// The built-in resources.
    pub(crate) fn built_in() -> Self {
        Self { resources: BUILT_IN.clone(), changes: 0 }
    }

    /// Puts all versions of a resource, the stored one first, in place of those there were.
    pub(crate) fn put(&mut self, versions: Vec<Resource>) {
        self.changes += 1;
        self.resources.retain(|known| versions.iter().all(|version| version.id != known.id));
        self.resources.extend(versions.into_iter().map(Arc::new));
    }

    /// Takes all versions of a resource away.
    pub(crate) fn remove(&mut self, id: &str) {
        self.changes += 1;
        self.resources.retain(|known| known.id != id);
    }

    /// How often it has changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The resource at a path.
    pub(crate) fn at(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.served().find(|known| known.plural == plural && known.group == group && known.version == version)
    }

    /// The resource called `pods`, or `deployments.apps` where the plural alone could mean several.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Resource>> {
        let by_id = self.resources.iter().find(|known| known.id == name);
        by_id.or_else(|| self.resources.iter().find(|known| known.plural == name))
    }

    /// What the definition of this name is served as: the stored version of its resource.
    pub(crate) fn of_definition(&self, name: &str) -> Option<&Arc<Resource>> {
        self.resources.iter().find(|known| known.rules.custom && known.id == name)
    }

    /// The resource whose objects are in this collection.
    pub(crate) fn stored_in(&self, collection: &str) -> Option<&Arc<Resource>> {
        self.resources.iter().find(|known| known.storage == collection && known.rules.view.is_none())
    }

    /// Whether anything is served under this group and version.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.served().any(|known| known.group == group && known.version == version)
    }

    /// All resources that there are paths for, built-in ones first.
    pub(crate) fn served(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter().filter(|known| known.served)
    }

    /// All resources, built-in ones first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_found_by_path_and_by_name() {
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
