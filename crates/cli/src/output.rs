//! How objects are written: for people, for scripts, and as they are.

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
use crate::discover::Offered;
use crate::object::Wire;

/// How objects are written.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// Columns for people.
    Table,
    /// More columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Only names, such as pod/web-1.
    Name,
}

/// `pod/web-1`, `deployment.apps/web`: what other commands take as a name.
pub(crate) fn full_name(offered: &Offered, object: &Wire) -> String {
    let singular = offered.singular();
    match offered.resource.group.as_str() {
        "" => format!("{singular}/{}", object.name()),
        group => format!("{singular}.{group}/{}", object.name()),
    }
}

/// One object, or a list of any number of them.
pub(crate) fn document(objects: &[Arc<Wire>], single: bool) -> Value {
    match objects {
        [one] if single => one.0.clone(),
        all => {
            let items: Vec<&Value> = all.iter().map(|object| &object.0).collect();
            json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items})
        }
    }
}

/// JSON with four spaces a step, as kubectl writes it.
pub(crate) fn pretty_json(value: &Value) -> serde_json::Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b"    ")))?;
    Ok(String::from_utf8_lossy(&text).into_owned() + "\n")
}

/// YAML with lists at the level of their name, as kubectl writes it.
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
    fn yaml_reads_back_as_what_it_was() {
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
        // Readers of YAML 1.1, as most tools are, must not take texts for switches.
        for word in ["yes", "no", "on"] {
            assert!(text.contains(&format!("- \"{word}\"")) || text.contains(&format!("- '{word}'")), "{text}");
        }
    }

    #[test]
    fn one_object_that_was_asked_for_by_name_is_no_list() {
        let object = Arc::new(Wire(json!({"metadata": {"name": "a"}})));
        assert_eq!(document(std::slice::from_ref(&object), true), object.0);
        assert_eq!(document(std::slice::from_ref(&object), false)["items"], json!([object.0]));
        assert_eq!(document(&[], true)["kind"], "List");
    }
}
