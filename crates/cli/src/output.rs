//! Output formats: tables, names, JSON and YAML.

mod change;
mod paint;
mod table;

use std::sync::Arc;

use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Value, json};

pub(crate) use self::change::changes;
pub(crate) use self::paint::Paint;
pub(crate) use self::table::Table;
use crate::discover::ServedResource;
use crate::object::Wire;

/// The output format of objects.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// A table.
    Table,
    /// A table with more columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Names, such as pod/web-1.
    Name,
}

/// Returns `pod/web-1` or `deployment.apps/web`, which kubectl accepts as a name.
pub(crate) fn full_name(offered: &ServedResource, object: &Wire) -> String {
    let singular = offered.singular();
    match offered.resource.group.as_str() {
        "" => format!("{singular}/{}", object.name()),
        group => format!("{singular}.{group}/{}", object.name()),
    }
}

/// Returns one object if `single`, otherwise a list.
pub(crate) fn document(objects: &[Arc<Wire>], single: bool) -> Value {
    match objects {
        [one] if single => one.0.clone(),
        all => {
            let items: Vec<&Value> = all.iter().map(|object| &object.0).collect();
            json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items})
        }
    }
}

/// Writes JSON with an indentation of four spaces, like kubectl.
pub(crate) fn pretty_json(value: &Value) -> serde_json::Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b"    ")))?;
    Ok(String::from_utf8_lossy(&text).into_owned() + "\n")
}

/// Writes YAML with lists at the indentation of their key, like kubectl.
pub(crate) fn yaml(value: &Value) -> Result<String, serde_saphyr::ser_error::Error> {
    let options = serde_saphyr::ser_options! { compact_list_indent: true };
    let mut text = serde_saphyr::to_string_with_options(value, options)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_round_trips() {
        let odd = json!({
            "strings": ["yes", "no", "on", "null", "~", "", "1", "1.0", "0x1f", "1e3", "0o17", "2001-01-01", "true", "a: b", "- a",
                "#x", "it's", "\"q\"", "tab\there", "two\nlines\n", "trailing ", " leading", "ä", "\u{7}", "&a", "*a", "!t", "%x", "@", "`"],
            "keys": {"yes": 1, "1": 2, "a: b": 3, "": 4, "app.kubernetes.io/name": 5},
            "numbers": [0, -1, 1.5, 9007199254740993u64, i64::MIN],
            "empty": [{}, [], null, true],
            "long": "word ".repeat(60),
        });
        let text = yaml(&odd).unwrap();
        let options = serde_saphyr::options! { strict_booleans: true };
        assert_eq!(serde_saphyr::from_str_with_options::<Value>(&text, options).unwrap(), odd, "{text}");
        // Readers of YAML 1.1, which most tools are, must not take these strings for booleans.
        for word in ["yes", "no", "on"] {
            assert!(text.contains(&format!("- \"{word}\"")) || text.contains(&format!("- '{word}'")), "{text}");
        }
    }

    #[test]
    fn an_object_requested_by_name_is_not_wrapped_in_a_list() {
        let object = Arc::new(Wire(json!({"metadata": {"name": "a"}})));
        assert_eq!(document(std::slice::from_ref(&object), true), object.0);
        assert_eq!(document(std::slice::from_ref(&object), false)["items"], json!([object.0]));
        assert_eq!(document(&[], true)["kind"], "List");
    }
}
