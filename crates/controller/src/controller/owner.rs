//! Finds the owners of an object.

use kube_informer::{KeyRef, Object, ObjectKey, Owner, ResourceType};

/// Selects the owners of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owners {
    /// The owner that is marked as controller.
    Controller,
    /// All owners.
    All,
}

/// Calls `add` with the keys of the owners of this kind, in any version of its group.
pub(super) fn owners_of<T: Object>(object: &T, kind: &ResourceType, owners: Owners, add: &mut dyn FnMut(ObjectKey)) {
    let namespace = object.id().key.namespace().filter(|_| kind.namespaced).unwrap_or_default();
    object.each_owner(&mut |owner| {
        if is_of_kind(&owner, kind) && (owner.controller || owners == Owners::All) && !owner.name.is_empty() {
            add(KeyRef::new(namespace, owner.name).into());
        }
    });
}

fn is_of_kind(owner: &Owner<'_>, kind: &ResourceType) -> bool {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    group == kind.group && owner.kind == kind.kind
}

#[cfg(test)]
mod tests {
    use kube_informer::Id;

    use super::*;

    struct Child {
        namespace: &'static str,
        owners: Vec<Owner<'static>>,
    }

    impl Object for Child {
        fn id(&self) -> Id<'_> {
            Id { key: KeyRef::new(self.namespace, "child"), uid: "", version: "" }
        }

        fn each_owner(&self, f: &mut dyn FnMut(Owner<'_>)) {
            self.owners.iter().copied().for_each(f);
        }
    }

    fn owner(api_version: &'static str, kind: &'static str, name: &'static str, controller: bool) -> Owner<'static> {
        Owner { api_version, kind, name, uid: "", controller }
    }

    fn check(namespaced: bool, owners: Owners, expected: &[&str]) {
        let kind = |group: &str| ResourceType {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: "Foo".to_owned(),
            plural: "foos".to_owned(),
            namespaced,
        };
        let child = Child {
            namespace: "web",
            owners: vec![
                owner("example.com/v2", "Foo", "of-another-version", true),
                owner("example.com/v1", "Foo", "no-controller", false),
                owner("example.com/v1", "Bar", "of-another-kind", true),
                owner("example.org/v1", "Foo", "of-another-group", true),
                owner("v1", "Foo", "of-the-core-group", true),
            ],
        };
        let mut keys = Vec::new();
        owners_of(&child, &kind("example.com"), owners, &mut |key| keys.push(key.to_string()));
        assert_eq!(keys, expected);
        keys.clear();
        owners_of(&child, &kind(""), Owners::Controller, &mut |key| keys.push(key.name().to_owned()));
        assert_eq!(keys, ["of-the-core-group"]);
    }

    #[test]
    fn an_owner_is_found_by_group_and_kind_and_not_by_version() {
        check(true, Owners::Controller, &["web/of-another-version"]);
        check(true, Owners::All, &["web/of-another-version", "web/no-controller"]);
    }

    #[test]
    fn an_owner_in_cluster_scope_has_no_namespace() {
        check(false, Owners::Controller, &["of-another-version"]);
    }
}
