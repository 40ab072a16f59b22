//! The columns of a resource, and tables of its objects.

use jiff::Timestamp;
use kube_structural_schema::{PrinterCell, PrinterColumns};
use serde_json::{Value, json};

use super::build::table;
use super::column::Column;
use super::{Form, Include, ListMeta, Row, age, columns, rows, rows_of_list};
use crate::kinds::Resource;

/// Makes tables of the objects of one resource.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    form: Form,
    columns: Shown,
    /// Whether the watch has sent the columns.
    told: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Shown {
    /// The columns of the built-in resource with this id.
    BuiltIn(String),
    /// The columns of a CRD.
    Defined(PrinterColumns),
}

impl Printer {
    pub(crate) fn of(resource: &Resource, part: Option<&str>, form: Form) -> Self {
        let columns = match &resource.rules.columns {
            None if part == Some("scale") && !resource.rules.custom => Shown::BuiltIn("scales.autoscaling".into()),
            Some(columns) => Shown::Defined(columns.clone()),
            None if resource.rules.custom => Shown::Defined(PrinterColumns::of_age()),
            None => Shown::BuiltIn(resource.id.clone()),
        };
        Self::new(columns, form)
    }

    pub(super) fn new(columns: Shown, form: Form) -> Self {
        Self { form, columns, told: false }
    }

    /// Returns the table of a list.
    pub(crate) fn list(&self, list: &Value, now: Timestamp) -> Value {
        let objects = list["items"].as_array().map_or(&[][..], Vec::as_slice);
        let rows = match &self.columns {
            Shown::BuiltIn(id) => rows_of_list(id, objects, now),
            Shown::Defined(columns) => objects.iter().map(|object| defined(columns, object, now)).collect(),
        };
        let mut table = table(Some(self.definitions()), &rows, &ListMeta::of_list(&list["metadata"]), self.form);
        if self.form.include == Include::Object {
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
        let rows = match &self.columns {
            Shown::BuiltIn(id) => rows(id, object, now),
            Shown::Defined(columns) => vec![defined(columns, object, now)],
        };
        table(columns, &rows, &ListMeta::of_object(object), self.form)
    }

    pub(super) fn definitions(&self) -> Vec<Value> {
        match &self.columns {
            Shown::BuiltIn(id) => columns(id).iter().map(Column::definition).collect(),
            Shown::Defined(defined) => {
                let own = defined.columns.iter().map(|column| {
                    json!({"name": column.name, "type": column.kind, "format": column.format,
                        "description": column.description, "priority": column.priority})
                });
                std::iter::once(Column::NAME.definition()).chain(own).collect()
            }
        }
    }
}

/// Adds kind and version to the objects in the rows of a list, whose items may omit both.
fn name_objects(table: &mut Value, list: &Value) {
    let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).unwrap_or_default();
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        row["object"]["kind"] = kind.into();
        row["object"]["apiVersion"] = list["apiVersion"].clone();
    }
}

/// Returns the row of a custom object.
fn defined<'a>(columns: &PrinterColumns, object: &'a Value, now: Timestamp) -> Row<'a> {
    let cell = |cell: PrinterCell| match cell {
        PrinterCell::Empty => Value::Null,
        PrinterCell::Text(text) => text.into(),
        PrinterCell::Integer(number) => number.into(),
        PrinterCell::Number(number) => number.into(),
        PrinterCell::Boolean(switch) => switch.into(),
        PrinterCell::Date(text) => age::since_text(&text, now).into(),
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let cells = std::iter::once(name.into()).chain(columns.cells(object).into_iter().map(cell)).collect();
    Row { cells, condition: None, object }
}
