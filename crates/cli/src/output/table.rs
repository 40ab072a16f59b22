//! Objects as lines of a table, with the columns that kube-apiserver has for their kind.

use std::time::SystemTime;

use http::Request;
use kube_client::Client;
use kube_embedded_apiserver::TablePrinter;
use kube_informer::ResourceType;
use serde_json::Value;

use crate::discover::ServedResource;
use crate::object::Wire;
use crate::output::full_name;
use crate::target::TargetInformer;

/// The space between two columns.
const GAP: &str = "   ";

/// Formats lines of a table. Columns grow with their cells.
pub(crate) struct Table {
    printer: TablePrinter,
    /// The indexes of the printer's columns that are shown.
    shown: Vec<usize>,
    /// True if the first column is the namespace.
    namespaces: bool,
    /// The resource whose kind is written before each name, if any.
    kind: Option<ServedResource>,
    titles: Vec<String>,
    widths: Vec<usize>,
}

impl Table {
    /// Returns the table for the resource of an informer.
    pub(crate) async fn of(followed: &TargetInformer, wide: bool) -> Self {
        let printer = printer(&followed.cluster.client, followed.resource()).await;
        Self::new(printer, wide, followed.many_namespaces())
    }

    fn new(printer: TablePrinter, wide: bool, namespaces: bool) -> Self {
        let columns = printer.columns();
        let shown: Vec<usize> = (0..columns.len()).filter(|at| wide || !columns[*at].wide).collect();
        let own = shown.iter().map(|at| columns[*at].name.to_uppercase());
        let titles: Vec<String> = namespaces.then(|| "NAMESPACE".to_owned()).into_iter().chain(own).collect();
        let widths = titles.iter().map(|title| title.chars().count()).collect();
        Self { printer, shown, namespaces, kind: None, titles, widths }
    }

    /// Writes names as `pod/web-1`, to tell the objects of several tables apart.
    pub(crate) fn with_kinds(self, offered: &ServedResource) -> Self {
        Self { kind: Some(offered.clone()), ..self }
    }

    /// Returns the cells of an object, and widens the columns for them.
    pub(crate) fn row(&mut self, object: &Wire) -> Vec<String> {
        let mut cells = self.printer.cells(&object.0, SystemTime::now());
        if let (Some(offered), Some(name)) = (&self.kind, cells.first_mut()) {
            *name = full_name(offered, object);
        }
        let own = self.shown.iter().map(|at| cells.get(*at).map(|cell| one_line(cell)).unwrap_or_default());
        let row: Vec<String> = self.namespaces.then(|| object.namespace().to_owned()).into_iter().chain(own).collect();
        for (width, cell) in self.widths.iter_mut().zip(&row) {
            *width = (*width).max(cell.chars().count());
        }
        row
    }

    /// Returns the line of the titles.
    pub(crate) fn head(&self) -> String {
        self.line(&self.titles)
    }

    /// Returns the line of a row.
    pub(crate) fn line(&self, row: &[String]) -> String {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&self.widths).enumerate() {
            if at > 0 {
                line.push_str(GAP);
            }
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Replaces control characters by spaces: a cell must not break the table or control the terminal.
fn one_line(cell: &str) -> String {
    cell.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Returns the columns of a resource. Those of a custom resource come from its CRD, if this user may read it.
async fn printer(client: &Client, resource: &ResourceType) -> TablePrinter {
    let ResourceType { group, plural, .. } = resource;
    let id = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
    let built_in = TablePrinter::built_in(&id);
    // Groups of custom resources are domain names. A built-in kind with more than name and age is not a custom
    // resource.
    if !group.contains('.') || built_in.columns().len() > 2 {
        return built_in;
    }
    match definition(client, &id).await {
        Some(definition) => TablePrinter::defined(additional_columns(&definition, &resource.version)),
        None => built_in,
    }
}

async fn definition(client: &Client, id: &str) -> Option<Value> {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{id}");
    client.request(Request::get(path).body(Vec::new()).ok()?).await.ok()
}

fn additional_columns<'d>(definition: &'d Value, version: &str) -> &'d [Value] {
    let versions = definition["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let own = versions.iter().find(|known| known["name"] == version);
    own.and_then(|own| own["additionalPrinterColumns"].as_array()).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(TablePrinter::built_in("configmaps"), false, true);
        let map = |name: &str| Wire(json!({"metadata": {"name": name, "namespace": "web"}, "data": {"a": "secret"}}));
        let (short, long) = (table.row(&map("a")), table.row(&map("a-long-name")));
        assert_eq!(table.head(), "NAMESPACE   NAME          DATA   AGE");
        assert_eq!(table.line(&short), "web         a             1      <unknown>");
        assert_eq!(table.line(&long), "web         a-long-name   1      <unknown>");
    }

    #[test]
    fn control_characters_in_cells_are_replaced() {
        let mut table = Table::new(TablePrinter::built_in("configmaps"), false, false);
        let row = table.row(&Wire(json!({"metadata": {"name": "a\u{1b}[31m\nb"}})));
        assert_eq!(row[0], "a [31m b");
    }

    #[test]
    fn additional_columns_are_those_of_the_served_version() {
        let definition =
            json!({"spec": {"versions": [{"name": "v1"}, {"name": "v2", "additionalPrinterColumns": [{}]}]}});
        assert_eq!(additional_columns(&definition, "v1"), [] as [Value; 0]);
        assert_eq!(additional_columns(&definition, "v2"), [json!({})]);
    }
}
