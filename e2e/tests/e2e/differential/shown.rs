//! Compares responses without values that differ on every server.

use serde_json::Value;
use std::collections::HashMap;

use super::Answer;

/// Replaces generated values by symbols, which are numbered in the order of their occurrence.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    known: HashMap<String, String>,
}

impl Symbols {
    /// Replaces uids, addresses and ports by symbols, and removes times and versions.
    pub(super) fn cut(&mut self, answer: &mut Answer) {
        self.value("", &mut answer.body);
        if answer.body["kind"] == "Status" {
            drop_messages(&mut answer.body);
        }
    }

    fn value(&mut self, name: &str, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(name, item)),
            Value::Object(members) => {
                members.remove("resourceVersion");
                if let Some(Value::Array(entries)) = members.get_mut("managedFields") {
                    // The order of entries depends on their times, which differ between the servers.
                    let text = |entry: &Value, member: &str| entry[member].as_str().unwrap_or_default().to_owned();
                    let names = ["operation", "manager", "subresource", "apiVersion"];
                    entries.sort_by_key(|entry| (names.map(|name| text(entry, name)), entry["time"].is_null()));
                }
                for (name, member) in members.iter_mut() {
                    self.value(name, member);
                }
            }
            Value::Number(_) if name == "nodePort" => *value = self.symbol("port", &value.to_string()).into(),
            Value::String(text) => {
                let cut = match name {
                    _ if name.ends_with("Timestamp") || name.ends_with("Time") || name == "time" => "time".to_owned(),
                    "uid" => self.symbol("uid", text),
                    "clusterIP" | "clusterIPs" if text != "None" => self.symbol("address", text),
                    "message" => self.sentence(text),
                    _ => return,
                };
                *value = cut.into();
            }
            _ => {}
        }
    }

    /// Replaces uids and times in a message.
    fn sentence(&mut self, text: &str) -> String {
        let words = text.split_inclusive([' ', ',', '(', ')', '"', '\n']);
        let word = |word: &str| {
            let plain = word.trim_end_matches([' ', ',', ')', '"', '\n', ':', '.']);
            let is_uid = plain.len() == 36 && plain.matches('-').count() == 4;
            let is_time = plain.len() == 20 && plain.ends_with('Z') && plain.contains('T');
            match () {
                () if is_uid => word.replace(plain, &self.symbol("uid", plain)),
                () if is_time => word.replace(plain, "time"),
                () => word.to_owned(),
            }
        };
        words.map(word).collect()
    }

    fn symbol(&mut self, kind: &str, text: &str) -> String {
        let next = self.known.len();
        self.known.entry(format!("{kind} {text}")).or_insert_with(|| format!("<{kind} {next}>")).clone()
    }
}

/// Removes the messages of a status, and sorts its causes, each once. Messages are for people, and kube-apiserver orders causes
/// at random.
fn drop_messages(status: &mut Value) {
    if let Some(members) = status.as_object_mut() {
        members.remove("message");
    }
    if let Some(Value::Array(causes)) = status.pointer_mut("/details/causes") {
        causes.iter_mut().filter_map(Value::as_object_mut).for_each(|cause| drop(cause.remove("message")));
        causes.sort_by_key(Value::to_string);
        causes.dedup();
    }
}

/// Returns the differences between the responses of kube-apiserver and the embedded server.
pub(super) fn difference(real: &Answer, embedded: &Answer) -> Option<String> {
    let mut found = Vec::new();
    if real.code != embedded.code {
        found.push(format!("  code: {} and {}", real.code, embedded.code));
    }
    if real.warnings != embedded.warnings {
        found.push(format!("  warnings: {:?} and {:?}", real.warnings, embedded.warnings));
    }
    compare("", &real.body, &embedded.body, &mut found);
    (!found.is_empty()).then(|| found.join("\n"))
}

fn compare(path: &str, real: &Value, embedded: &Value, found: &mut Vec<String>) {
    if found.len() >= 12 || real == embedded {
        return;
    }
    match (real, embedded) {
        (Value::Object(one), Value::Object(two)) => {
            for name in one.keys().chain(two.keys().filter(|name| !one.contains_key(*name))) {
                let missing = Value::String("<missing>".into());
                compare(
                    &format!("{path}/{name}"),
                    one.get(name).unwrap_or(&missing),
                    two.get(name).unwrap_or(&missing),
                    found,
                );
            }
        }
        (Value::Array(one), Value::Array(two)) => {
            let missing = Value::String("<missing>".into());
            for index in 0..one.len().max(two.len()) {
                let item = |list: &Vec<Value>| list.get(index).unwrap_or(&missing).clone();
                compare(&format!("{path}/{index}"), &item(one), &item(two), found);
            }
        }
        _ => found.push(format!("  {path}: {real} and {embedded}")),
    }
}
