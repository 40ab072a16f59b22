//! A resource: its names, its scope and the rules in which kinds differ.

use kube_structural_schema::{PrinterColumns, StructuralSchema};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

use super::field::{SelectableField, UnknownField};
use super::form;
use super::types::{self, Struct};
use crate::status::StatusDetails;

/// A resource that the server offers: built in, or custom.
#[derive(Debug, Clone)]
pub struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) namespaced: bool,
    /// Whether it is served; a version may be only stored.
    pub(crate) served: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// `plural` or `plural.group`. All versions of a resource share it.
    pub(crate) id: String,
    /// The collection of its objects: its id, unless it shows the objects of another resource.
    pub(crate) storage: String,
    /// The type of its objects; `None` for custom ones.
    pub(crate) of: Option<&'static Struct>,
    /// The schema of custom objects, if there is one.
    pub(crate) schema: Option<Arc<StructuralSchema>>,
    pub(crate) rules: KindRules,
}

/// The rules in which kinds differ.
#[derive(Debug, Clone, Default)]
pub(crate) struct KindRules {
    /// Whether it comes from a CRD.
    pub(crate) custom: bool,
    /// Has a `/status` subresource: main writes never change status, and status writes change only status.
    pub(crate) status: bool,
    /// A create is answered and stores no object.
    pub(crate) review: bool,
    /// Has a `/scale` subresource.
    pub(crate) scale: Option<Scale>,
    /// Counts changes of the spec in `metadata.generation`.
    pub(crate) generation: bool,
    /// An update must have a `resourceVersion`.
    pub(crate) version_required: bool,
    /// An update of a missing object creates it.
    pub(crate) create_on_update: bool,
    /// A delete returns the object, not a `Status`.
    pub(crate) returns_deleted: bool,
    /// Lists ignore the watch cache, as for events.
    pub(crate) uncached: bool,
    /// The selectable fields beside name and namespace.
    pub(crate) fields: Vec<SelectableField>,
    /// How an unknown field selector is refused.
    pub(crate) unknown_field: UnknownField,
    /// How its objects differ from the stored ones, if they do.
    pub(crate) view: Option<StoredView>,
    /// `spec.conversion.webhook` of its CRD, if a webhook converts its objects.
    pub(crate) conversion: Option<Arc<Value>>,
    /// The schema as published in its CRD.
    pub(crate) published: Option<Value>,
    /// The table columns from its CRD.
    pub(crate) columns: Option<PrinterColumns>,
    /// The generation of its CRD.
    pub(crate) definition: i64,
    /// The top-level members of an empty object, as shown in bookmarks.
    pub(crate) empty: &'static str,
}

/// How a resource shows objects that are stored in another version or group.
#[derive(Debug, Clone)]
pub(crate) struct StoredView {
    /// The stored `apiVersion`.
    pub(crate) api_version: String,
    /// Top-level members with other names: the stored one, and the shown one.
    pub(crate) renamed: &'static [(&'static str, &'static str)],
    /// The schema of the storage version of a custom resource. Fields that it does not have are not stored.
    pub(crate) stored_schema: Option<Arc<StructuralSchema>>,
}

impl StoredView {
    fn rename(object: &mut Value, names: impl Iterator<Item = (&'static str, &'static str)>) {
        let Some(members) = object.as_object_mut() else { return };
        for (from, to) in names {
            if let Some(value) = members.remove(from) {
                members.insert(to.to_owned(), value);
            }
        }
    }
}

/// The JSON pointers to the replicas of a scalable object.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: Option<String>,
}

impl Resource {
    /// Returns kind and version, for messages about bodies.
    pub(crate) fn named(&self) -> (&str, &str) {
        (&self.kind, &self.version)
    }

    /// Returns a custom resource, as a CRD would define it: namespaced, with a status subresource.
    ///
    /// ```
    /// # use kube_embedded_apiserver::Resource;
    /// let gadgets = Resource::custom("demo.example.com", "v1", "gadgets", "Gadget");
    /// assert_eq!(gadgets.id(), "gadgets.demo.example.com");
    /// ```
    #[must_use]
    pub fn custom(group: &str, version: &str, plural: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            namespaced: true,
            served: true,
            short_names: Vec::new(),
            categories: Vec::new(),
            id: storage_id(group, plural),
            storage: storage_id(group, plural),
            of: None,
            schema: None,
            rules: KindRules {
                custom: true,
                status: true,
                generation: true,
                version_required: true,
                unknown_field: UnknownField::Label,
                ..KindRules::default()
            },
        }
    }

    /// Returns the same resource in cluster scope.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// Makes `path` a selectable field, such as `spec.size`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::{ApiServer, Resource};
    /// # use kube_client::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
    /// # use serde_json::json;
    /// let gadgets = Resource::custom("shop.example.com", "v1", "gadgets", "Gadget").selectable("spec.colour");
    /// let server = ApiServer::builder().with_custom_resource(gadgets).build();
    /// for colour in ["red", "blue"] {
    ///     server.create("gadgets", Some("default"), json!({"metadata": {"name": colour}, "spec": {"colour": colour}}))?;
    /// }
    /// let gadgets = ApiResource::from_gvk(&GroupVersionKind::gvk("shop.example.com", "v1", "Gadget"));
    /// let api: Api<DynamicObject> = Api::all_with(server.client(), &gadgets);
    /// assert_eq!(api.list(&ListParams::default().fields("spec.colour=red")).await?.items.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn selectable(mut self, path: &str) -> Self {
        self.rules.fields.push(SelectableField::at(path));
        self
    }

    /// Adds a scale subresource for `spec.replicas` and `status.replicas`.
    #[must_use]
    pub fn scalable(mut self) -> Self {
        self.rules.scale = Some(Scale {
            spec_replicas: "/spec/replicas".into(),
            status_replicas: "/status/replicas".into(),
            selector: None,
        });
        self
    }

    /// Returns the API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the plural name, as in paths.
    #[must_use]
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// Returns the kind of its objects.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns whether its objects are namespaced.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    /// Returns the unique name: `pods`, `deployments.apps`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns group and version: `v1`, `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        group_version(&self.group, &self.version)
    }

    /// Converts an object of this resource to its stored form.
    pub(crate) fn stored<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        let Some(view) = &self.rules.view else { return Cow::Borrowed(object) };
        let mut stored = object.clone();
        StoredView::rename(&mut stored, view.renamed.iter().map(|(stored, shown)| (*shown, *stored)));
        stored["apiVersion"] = view.api_version.as_str().into();
        if self.of.is_some() {
            complete(types::kind(&view.api_version, &self.kind), &mut stored);
        }
        if let Some(schema) = &view.stored_schema {
            schema.prune(&mut stored);
            // Defaults that exceed the size limit are left out: such an object is refused for its size later.
            let _ = schema.apply_defaults(&mut stored);
        }
        Cow::Owned(stored)
    }

    /// Converts a stored object to this resource.
    pub(crate) fn shown(&self, mut stored: Value) -> Value {
        if let Some(view) = &self.rules.view {
            StoredView::rename(&mut stored, view.renamed.iter().copied());
            stored["apiVersion"] = self.api_version().into();
            complete(self.of, &mut stored);
            // As in kube-apiserver, defaults are those of the storage version.
            if let Some(schema) = &self.schema {
                schema.prune(&mut stored);
            }
        }
        stored
    }

    /// Returns the name in error messages, which is the id.
    pub(crate) fn qualified(&self) -> &str {
        &self.id
    }

    /// Returns the details of a status about one of its objects.
    pub(crate) fn details(&self, name: &str) -> StatusDetails {
        StatusDetails {
            name: name.to_owned(),
            group: self.group.clone(),
            kind: self.plural.clone(),
            ..StatusDetails::default()
        }
    }
}

/// Adds the required fields of an object of this type, and removes the empty ones.
fn complete(of: Option<&'static Struct>, object: &mut Value) {
    if let (Some(of), Value::Object(members)) = (of, object) {
        form::complete(of, members);
    }
}

/// Returns `v1` for the core group, `group/version` for all others.
pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Returns `plural` for the core group, `plural.group` for all others.
pub(crate) fn storage_id(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}
