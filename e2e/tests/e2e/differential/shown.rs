//! What is compared of an answer: everything but what no two servers agree on.

use serde_json::Value;
use std::collections::HashMap;

use super::Answer;

/// Stands for what a server makes up: the first of a kind is always called the first.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    known: HashMap<String, String>,
}

impl Symbols {
    /// Puts symbols for uids, addresses and ports, and cuts times and versions.
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
                    // Their order follows from their times, which two servers do not share.
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

    /// A sentence may name uids and times.
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

/// Removes the messages of a status, and leaves the reason and field of each cause, once and in order: messages are for people, and their
/// text is not promised.
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

/// What is different between the answers of the real and the embedded server.
pub(super) fn difference(real: &Answer, embedded: &Answer) -> Option<String> {
    let mut told = Vec::new();
    if real.code != embedded.code {
        told.push(format!("  code: {} and {}", real.code, embedded.code));
    }
    if real.warnings != embedded.warnings {
        told.push(format!("  warnings: {:?} and {:?}", real.warnings, embedded.warnings));
    }
    compare("", &real.body, &embedded.body, &mut told);
    (!told.is_empty()).then(|| told.join("\n"))
}

fn compare(path: &str, real: &Value, embedded: &Value, told: &mut Vec<String>) {
    if told.len() >= 12 || real == embedded {
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
                    told,
                );
            }
        }
        (Value::Array(one), Value::Array(two)) => {
            let missing = Value::String("<missing>".into());
            for index in 0..one.len().max(two.len()) {
                let item = |list: &Vec<Value>| list.get(index).unwrap_or(&missing).clone();
                compare(&format!("{path}/{index}"), &item(one), &item(two), told);
            }
        }
        _ => told.push(format!("  {path}: {real} and {embedded}")),
    }
}
