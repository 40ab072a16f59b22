//! The `Table` object, as a response or as an event of a watch.

use serde_json::{Map, Value, json};

use super::column::Column;
use super::read::Read;
use super::row::Row;

/// The `apiVersion` of a table.
const META: &str = "meta.k8s.io/v1";

/// The annotation of the bookmark that ends the initial events of a watch.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Fields of autoscalers that version 1 keeps in annotations.
const AUTOSCALER_FIELDS: [&str; 6] =
    ["metrics", "current-metrics", "conditions", "behavior", "scale-down-tolerance", "scale-up-tolerance"];

/// How much of its object each row contains: the parameter `includeObject`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Include {
    /// Nothing.
    None,
    /// The metadata, as a `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// An invalid value of `includeObject`; shown as the message of the status 400.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadInclude(String);

impl std::fmt::Display for BadInclude {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = Value::from(self.0.as_str());
        write!(formatter, "Unable to convert to Table as requested: includeObject: Invalid value: {value}: ")?;
        formatter.write_str("must be 'Metadata', 'Object', 'None', or empty")
    }
}

impl std::error::Error for BadInclude {}

impl Include {
    /// Parses the parameter `includeObject`; an empty or absent one requests metadata.
    ///
    /// # Errors
    ///
    /// The value is not known.
    pub(crate) fn parse(parameter: &str) -> Result<Self, BadInclude> {
        match parameter {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::None),
            other => Err(BadInclude(other.into())),
        }
    }
}

/// The options of a table request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// How much of each object is included.
    pub(crate) include: Include,
}

/// The metadata of the list in the table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListMeta {
    /// The version of the list, or of the only object.
    pub(crate) resource_version: String,
    /// The continue token; empty on the last page.
    pub(crate) continue_token: String,
    /// The number of remaining objects, if known.
    pub(crate) remaining: Option<i64>,
}

impl ListMeta {
    /// Returns the metadata for a table of one object.
    #[must_use]
    pub(crate) fn of_object(object: &Value) -> Self {
        Self { resource_version: object.text("metadata.resourceVersion").into(), ..Self::default() }
    }

    /// Returns the metadata for a table of a list, from the metadata of the list.
    #[must_use]
    pub(crate) fn of_list(metadata: &Value) -> Self {
        Self {
            resource_version: metadata.text("resourceVersion").into(),
            continue_token: metadata.text("continue").into(),
            remaining: metadata.number("remainingItemCount"),
        }
    }

    fn entry(&self) -> Value {
        let mut entry = Map::new();
        if !self.resource_version.is_empty() {
            entry.insert("resourceVersion".into(), self.resource_version.as_str().into());
        }
        if !self.continue_token.is_empty() {
            entry.insert("continue".into(), self.continue_token.as_str().into());
        }
        if let Some(remaining) = self.remaining {
            entry.insert("remainingItemCount".into(), remaining.into());
        }
        Value::Object(entry)
    }
}

/// Returns a table of those rows. A table without columns is a later event of a watch; the first event had them.
pub(super) fn table(columns: Option<Vec<Value>>, rows: &[Row<'_>], metadata: &ListMeta, form: Form) -> Value {
    // In kube-apiserver an empty table has an empty list of rows for kinds with their own printer, and null for the
    // default printer.
    let told = |column: &Value| column["name"] == Column::CREATED_AT.name;
    let absent = rows.is_empty() && columns.as_ref().is_some_and(|columns| columns.iter().any(told));
    let rows: Vec<Value> = rows.iter().map(|row| entry(row, form)).collect();
    json!({
        "kind": "Table",
        "apiVersion": META,
        "metadata": metadata.entry(),
        "columnDefinitions": columns,
        "rows": (!absent).then_some(rows),
    })
}

/// Returns one row with the requested part of its object.
fn entry(row: &Row<'_>, form: Form) -> Value {
    let ends_initial_events = row.object.entry("metadata.annotations", INITIAL_EVENTS_END) == Some("true");
    let object = match form.include {
        Include::Object => row.object.clone(),
        // The client must find the mark, whatever it requested.
        Include::None if !ends_initial_events => Value::Null,
        Include::None | Include::Metadata => partial_metadata(row.object),
    };
    let mut entry = Map::new();
    entry.insert("cells".into(), Value::Array(row.cells.clone()));
    if let Some(condition) = row.condition {
        entry.insert("conditions".into(), json!([condition.entry()]));
    }
    entry.insert("object".into(), object);
    Value::Object(entry)
}

/// Returns the metadata of the object as `PartialObjectMetadata`.
fn partial_metadata(object: &Value) -> Value {
    let mut metadata = object.map("metadata").cloned().unwrap_or_default();
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !is_field_in_disguise(object.text("kind"), key));
    }
    let is_nothing = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    metadata.retain(|_, value| !is_nothing(value));
    json!({ "kind": "PartialObjectMetadata", "apiVersion": META, "metadata": metadata })
}

/// Returns whether the annotation is a field in kube-apiserver's internal version. `PartialObjectMetadata` omits it.
fn is_field_in_disguise(kind: &str, annotation: &str) -> bool {
    match kind {
        "DaemonSet" => annotation == "deprecated.daemonset.template.generation",
        "Deployment" => annotation == "deprecated.deployment.rollback.to",
        "HorizontalPodAutoscaler" => annotation
            .strip_prefix("autoscaling.alpha.kubernetes.io/")
            .is_some_and(|field| AUTOSCALER_FIELDS.contains(&field)),
        _ => false,
    }
}
