//! All resources one server offers, found by path or by name.

use std::sync::{Arc, LazyLock};

use super::{Resource, table};

static BUILT_IN: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(|| table::built_in().map(Arc::new).collect());

/// The resources of one server. Built-in ones come first; custom ones come and go.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    resources: Vec<Arc<Resource>>,
}

impl Catalog {
    /// The built-in resources.
    pub(crate) fn built_in() -> Self {
        Self { resources: BUILT_IN.clone() }
    }

    /// Puts all versions of a resource, the stored one first, in place of those there were.
    pub(crate) fn put(&mut self, versions: Vec<Resource>) {
        self.resources.retain(|known| versions.iter().all(|version| version.id != known.id));
        self.resources.extend(versions.into_iter().map(Arc::new));
    }

    /// Takes all versions of a resource away.
    pub(crate) fn remove(&mut self, id: &str) {
        self.resources.retain(|known| known.id != id);
    }

    /// The resource at a path.
    pub(crate) fn at(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.iter().find(|known| known.plural == plural && known.group == group && known.version == version)
    }

    /// The resource called `pods`, or `deployments.apps` where the plural alone could mean several.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Resource>> {
        let by_id = self.resources.iter().find(|known| known.id == name);
        by_id.or_else(|| self.resources.iter().find(|known| known.plural == name))
    }

    /// Whether anything is served under this group and version.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.resources.iter().any(|known| known.group == group && known.version == version)
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
