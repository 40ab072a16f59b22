//! The columns of a resource, and tables of its objects: as a response, or as events of a watch.

use jiff::Timestamp;
use kube_structural_schema::{PrinterCell, PrinterColumns};
use serde_json::{Map, Value, json};

use super::age;
use super::columns::{CellColumn, columns, name_column};
use super::read::ReadMember;
use crate::kinds::Resource;

/// The `apiVersion` of a table.
const META: &str = "meta.k8s.io/v1";
/// The annotation of the bookmark that ends the initial events of a watch.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

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

impl Include {
    /// Parses the parameter `includeObject`; an empty or absent one requests metadata.
    ///
    /// # Errors
    ///
    /// The value is not known; the error is a message for the client.
    pub(crate) fn parse(parameter: &str) -> Result<Self, String> {
        match parameter {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::None),
            other => Err(format!("includeObject: must be 'Metadata', 'Object', 'None', or empty, and not {other:?}")),
        }
    }
}

/// Makes tables of the objects of one resource.
#[derive(Debug, Clone)]
pub(crate) struct RowPrinter {
    include: Include,
    columns: Shown,
    /// Whether the watch has sent the columns.
    told: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Shown {
    /// The columns of a built-in resource.
    BuiltIn(&'static [CellColumn]),
    /// The columns of a CRD.
    Defined(PrinterColumns),
}

impl RowPrinter {
    pub(crate) fn of(resource: &Resource, part: Option<&str>, include: Include) -> Self {
        let columns = match &resource.rules.columns {
            None if part == Some("scale") && !resource.rules.custom => Shown::BuiltIn(columns("scales.autoscaling")),
            Some(columns) => Shown::Defined(columns.clone()),
            None if resource.rules.custom => Shown::Defined(PrinterColumns::of_age()),
            None => Shown::BuiltIn(columns(&resource.id)),
        };
        Self::new(columns, include)
    }

    pub(super) fn new(columns: Shown, include: Include) -> Self {
        Self { include, columns, told: false }
    }

    /// Returns the table of a list.
    pub(crate) fn list(&self, list: &Value, now: Timestamp) -> Value {
        let rows = list.list("items").iter().map(|object| self.row(object, now)).collect();
        let metadata = picked(&list["metadata"], &["resourceVersion", "continue", "remainingItemCount"]);
        let mut table = table(Some(self.definitions()), rows, metadata);
        if self.include == Include::Object {
            name_objects(&mut table, list);
        }
        table
    }

    /// Returns the table of one object.
    pub(crate) fn object(&self, object: &Value, now: Timestamp) -> Value {
        self.single(object, Some(self.definitions()), now)
    }

    /// Returns the table for the object of the next watch event. Only the first event has the columns.
    ///
    /// Bookmarks are tables like other events. Errors are not: their `Status` is sent unchanged.
    pub(crate) fn event(&mut self, object: &Value, now: Timestamp) -> Value {
        let columns = (!std::mem::replace(&mut self.told, true)).then(|| self.definitions());
        self.single(object, columns, now)
    }

    fn single(&self, object: &Value, columns: Option<Vec<Value>>, now: Timestamp) -> Value {
        table(columns, vec![self.row(object, now)], picked(&object["metadata"], &["resourceVersion"]))
    }

    /// Returns one row with the requested part of its object.
    fn row(&self, object: &Value, now: Timestamp) -> Value {
        let ends_initial_events = object.entry("metadata.annotations", INITIAL_EVENTS_END) == Some("true");
        let shown = match self.include {
            Include::Object => object.clone(),
            // The client must find the mark, whatever it requested.
            Include::None if !ends_initial_events => Value::Null,
            Include::None | Include::Metadata => partial_metadata(object),
        };
        json!({ "cells": self.cells(object, now), "object": shown })
    }

    /// Returns a cell for each column.
    pub(super) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.columns {
            Shown::BuiltIn(columns) => columns.iter().map(|column| column.cell(object, now)).collect(),
            Shown::Defined(columns) => {
                let cell = |cell: PrinterCell| match cell {
                    PrinterCell::Empty => Value::Null,
                    PrinterCell::Text(text) => text.into(),
                    PrinterCell::Integer(number) => number.into(),
                    PrinterCell::Number(number) => number.into(),
                    PrinterCell::Boolean(switch) => switch.into(),
                    PrinterCell::Date(text) => age::since_text(&text, now).into(),
                };
                std::iter::once(object.name().into()).chain(columns.cells(object).into_iter().map(cell)).collect()
            }
        }
    }

    /// Returns the columns for `columnDefinitions`.
    pub(super) fn definitions(&self) -> Vec<Value> {
        let built_in = |column: &CellColumn| definition(column.name, column.kind, column.format, "", column.priority);
        match &self.columns {
            Shown::BuiltIn(columns) => columns.iter().map(built_in).collect(),
            Shown::Defined(defined) => {
                let own = defined.columns.iter().map(|column| {
                    definition(&column.name, &column.kind, &column.format, &column.description, column.priority)
                });
                std::iter::once(built_in(name_column())).chain(own).collect()
            }
        }
    }
}

fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({ "name": name, "type": kind, "format": format, "description": description, "priority": priority })
}

/// Returns a table of those rows. A table without columns is a later event of a watch; the first event had them.
fn table(columns: Option<Vec<Value>>, rows: Vec<Value>, metadata: Value) -> Value {
    json!({ "kind": "Table", "apiVersion": META, "metadata": metadata, "columnDefinitions": columns, "rows": rows })
}

/// Returns these members of the metadata, if they are not empty.
fn picked(metadata: &Value, members: &[&str]) -> Value {
    let found = members.iter().filter_map(|member| Some(((*member).to_owned(), metadata.at(member)?.clone())));
    found.filter(|(_, value)| value != "").collect()
}

/// Returns the metadata of the object as `PartialObjectMetadata`.
fn partial_metadata(object: &Value) -> Value {
    let mut metadata = object.map("metadata").cloned().unwrap_or_default();
    let is_nothing = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    metadata.retain(|_, value| !is_nothing(value));
    json!({ "kind": "PartialObjectMetadata", "apiVersion": META, "metadata": metadata })
}

/// Adds kind and version to the objects in the rows of a list, whose items may omit both.
fn name_objects(table: &mut Value, list: &Value) {
    let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).unwrap_or_default();
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        row["object"]["kind"] = kind.into();
        row["object"]["apiVersion"] = list["apiVersion"].clone();
    }
}
