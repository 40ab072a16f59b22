//! Checks that defaults are valid for their own schema.

use serde_json::Value;

use super::cause::{FieldError, shown};
use super::faults::TypeReading;
use super::limits;
use super::node::SchemaNode;
use super::path::ValuePath;
use super::programs::Programs;
use super::unknown::Unknown;
use super::validate::values;
use super::{meta, prune, runner};

/// Returns the errors of every default that is not valid, or that has unknown fields.
pub(crate) fn check(root: &SchemaNode, programs: &Programs, path: &ValuePath<'_>) -> Vec<FieldError> {
    let mut causes = Vec::new();
    if let Some(default) = &root.default {
        one((root, programs), default, true, &path.child("default"), &mut causes);
    }
    inside(root, programs, path, &mut causes);
    causes
}

fn inside(node: &SchemaNode, programs: &Programs, path: &ValuePath<'_>, causes: &mut Vec<FieldError>) {
    if causes.len() > limits::PROBLEMS {
        return;
    }
    let members = path.child("properties");
    let members = node.properties.iter().map(|(name, member)| (members.key(name), member));
    let items = node.items.as_deref().map(|items| (path.child("items"), items));
    for (path, inner) in items.into_iter().chain(members) {
        if let Some(default) = &inner.default {
            one((inner, programs), default, inner.embedded, &path.child("default"), causes);
        }
        inside(inner, programs, &path, causes);
    }
    // Defaults of maps are not checked, as in kube-apiserver.
}

fn one(
    (node, programs): (&SchemaNode, &Programs),
    default: &Value,
    is_resource: bool,
    path: &ValuePath<'_>,
    causes: &mut Vec<FieldError>,
) {
    let mut pruned = default.clone();
    prune::fields_only(&mut pruned, node, is_resource);
    if pruned != *default {
        // Metadata is sorted before anything is printed.
        let mut ordered = default.clone();
        meta::prune_embedded(&mut ordered, node, &mut String::new(), &mut Unknown::default());
        causes.push(FieldError::invalid(path, &shown(&ordered), "must not have unknown fields"));
    }
    let before = causes.len();
    meta::check_inside(default, node, path, is_resource, causes);
    if causes.len() > before {
        return;
    }
    causes.extend(values(node, default, None, path, TypeReading::AsInDefaults));
    if causes.len() > before || !node.has_rules {
        return;
    }
    // Rules must hold both for a new value and for an unchanged one.
    runner::run_on_default((node, programs), default, runner::Earlier::TheSame, path, causes);
    if causes.len() == before {
        runner::run_on_default((node, programs), default, runner::Earlier::Nothing, path, causes);
    }
}

/// Prunes every default of a schema like an object.
pub(crate) fn prune_all(node: &mut SchemaNode) {
    if let Some(mut default) = node.default.take() {
        prune::fields_only(&mut default, node, node.embedded);
        meta::prune_embedded(&mut default, node, &mut String::new(), &mut Unknown::default());
        node.default = Some(default);
    }
    node.inner_mut().for_each(prune_all);
}
