//! Tables for programs that have objects but no API server.

use kube_structural_schema::PrinterColumns;
use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::Value;

use super::columns::own_columns;
use super::printer::{Include, RowPrinter, Shown};

/// Prints objects as an API server does for a table request, which is what kubectl shows.
///
/// ```
/// use std::time::SystemTime;
/// use kube_embedded_apiserver::TablePrinter;
/// # use serde_json::json;
/// let maps = TablePrinter::built_in("configmaps");
/// let titles: Vec<String> = maps.columns().into_iter().map(|column| column.name).collect();
/// assert_eq!(titles, ["Name", "Data", "Age"]);
/// let map = json!({"metadata": {"name": "a"}, "data": {"x": "1"}});
/// assert_eq!(maps.cells(&map, SystemTime::now()), ["a", "1", "<unknown>"]);
/// ```
#[derive(Debug, Clone)]
pub struct TablePrinter(RowPrinter);

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableColumn {
    /// Its heading, such as `Ready`.
    pub name: String,
    /// Whether kubectl shows it only with `-o wide`.
    pub wide: bool,
}

impl TablePrinter {
    /// Returns the printer of a built-in resource, by its plural and group: `pods`, `deployments.apps`.
    ///
    /// A resource without columns of its own shows name and age.
    #[must_use]
    pub fn built_in(id: &str) -> Self {
        Self::of(own_columns(id).map_or_else(|| Shown::Defined(PrinterColumns::of_age()), Shown::BuiltIn))
    }

    /// Returns the printer of a custom resource, from the `additionalPrinterColumns` of its version in the CRD. An
    /// empty list shows name and age.
    #[must_use]
    pub fn defined(additional_columns: &[Value]) -> Self {
        let columns = if additional_columns.is_empty() {
            PrinterColumns::of_age()
        } else {
            PrinterColumns::parse(additional_columns)
        };
        Self::of(Shown::Defined(columns))
    }

    fn of(columns: Shown) -> Self {
        Self(RowPrinter::new(columns, Include::None))
    }

    /// Returns the columns, starting with the name.
    #[must_use]
    pub fn columns(&self) -> Vec<TableColumn> {
        let definitions = self.0.definitions();
        let column = |definition: &Value| TableColumn {
            name: definition["name"].as_str().unwrap_or_default().to_owned(),
            wide: definition["priority"].as_i64().unwrap_or_default() > 0,
        };
        definitions.iter().map(column).collect()
    }

    /// Returns the cells of an object at this time. They never show data of a Secret.
    #[must_use]
    pub fn cells(&self, object: &Value, now: SystemTime) -> Vec<String> {
        let now = Timestamp::try_from(now).unwrap_or(Timestamp::MAX);
        let text = |cell: Value| match cell {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        };
        self.0.cells(object, now).into_iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn titles(printer: &TablePrinter) -> Vec<(String, bool)> {
        printer.columns().into_iter().map(|column| (column.name, column.wide)).collect()
    }

    #[test]
    fn resource_without_printer_shows_name_and_age() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let object = json!({"metadata": {"name": "a", "creationTimestamp": "1970-01-12T13:45:40Z"}});
        let expected = [("Name".to_owned(), false), ("Age".to_owned(), false)];
        for printer in [TablePrinter::built_in("limitranges"), TablePrinter::defined(&[])] {
            assert_eq!(titles(&printer), expected);
            assert_eq!(printer.cells(&object, now.into()), ["a", "60s"]);
        }
    }

    #[test]
    fn crd_columns_follow_the_name() {
        let columns = [
            json!({"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}),
            json!({"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}),
        ];
        let printer = TablePrinter::defined(&columns);
        assert_eq!(titles(&printer), [("Name".into(), false), ("Ready".into(), false), ("Size".into(), true)]);
        let object = json!({"metadata": {"name": "a"}, "spec": {"size": 3},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(printer.cells(&object, SystemTime::UNIX_EPOCH), ["a", "True", "3"]);
    }
}
