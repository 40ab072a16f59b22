//! Decisions that are derived from the fuzzer's bytes.

use serde_json::{Map, Value, json};

/// Bytes that are consumed one decision after the other. After the last byte, every decision takes the first choice.
#[derive(Debug)]
pub(crate) struct Choices<'a> {
    left: &'a [u8],
}

impl<'a> Choices<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Self { left: input }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((byte, left)) = self.left.split_first() else { return 0 };
        self.left = left;
        *byte
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Takes this many bytes, or all that are left.
    pub(crate) fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, left) = self.left.split_at(length.min(self.left.len()));
        self.left = left;
        taken
    }

    /// Takes all bytes that are left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        self.take(self.left.len())
    }

    /// Returns a few characters of any kind.
    pub(crate) fn text(&mut self) -> String {
        let length = self.below(12);
        String::from_utf8_lossy(self.take(length)).into_owned()
    }

    /// Returns any JSON with up to this many levels. Members often have one of these names.
    pub(crate) fn json(&mut self, names: &[&str], levels: usize) -> Value {
        match self.below(if levels == 0 { 6 } else { 12 }) {
            0 => Value::Null,
            1 => (!self.coin()).into(),
            2 => self.number(),
            3 => self.text().into(),
            4 => self.pick(names).into(),
            5 => self.pick(TEXTS).into(),
            6 | 7 => (0..self.below(4)).map(|_| self.json(names, levels - 1)).collect(),
            _ => {
                let members = (0..self.below(5)).map(|_| (self.name(names), self.json(names, levels - 1)));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    fn name(&mut self, names: &[&str]) -> String {
        match self.below(16) {
            15 => self.text(),
            _ => self.pick(names).to_owned(),
        }
    }

    pub(crate) fn number(&mut self) -> Value {
        match self.below(12) {
            0 => 0.into(),
            1 => 1.into(),
            2 => (-1).into(),
            3 => i64::MAX.into(),
            4 => i64::MIN.into(),
            5 => u64::MAX.into(),
            6 => json!(0.5),
            7 => json!(1e300),
            8 => json!(2_147_483_648_i64),
            9 => json!(1.0),
            _ => self.byte().into(),
        }
    }

    /// Returns the sample, or a variation: with parts removed, emptied, repeated or replaced.
    pub(crate) fn varied(&mut self, sample: &Value) -> Value {
        match self.below(4) {
            0 => sample.clone(),
            _ => self.inside(sample),
        }
    }

    /// Returns operations of a JSON patch for the sample. Most of them can be applied.
    pub(crate) fn operations(&mut self, sample: &Value) -> Value {
        let operations = (0..=self.below(4)).map(|_| {
            let (path, from) = (self.pointer(sample), self.pointer(sample));
            let value = match sample.pointer(&path) {
                Some(value) => self.varied(value),
                None => self.json(TEXTS, 2),
            };
            json!({"op": self.pick(OPERATIONS), "path": path, "from": from, "value": value})
        });
        operations.collect()
    }

    /// Returns a JSON pointer to a part of the sample, or to a member that can be added.
    fn pointer(&mut self, sample: &Value) -> String {
        let mut path = String::new();
        let mut place = sample;
        loop {
            let step = match place {
                Value::Object(members) => members.keys().nth(self.below(members.len() + 1)).cloned(),
                Value::Array(items) => Some(self.below(items.len() + 1).to_string()),
                _ => None,
            };
            // Stops at a missing member, and by chance earlier.
            let Some(step) = step else { return path };
            path.push('/');
            path.push_str(&step.replace('~', "~0").replace('/', "~1"));
            match sample.pointer(&path) {
                Some(next) if self.below(4) > 0 => place = next,
                _ => return path,
            }
        }
    }

    /// Returns a variation of a part; `None` if it is removed.
    fn part(&mut self, sample: &Value) -> Option<Value> {
        match self.below(16) {
            0 => Some(sample.clone()),
            1..=6 => None,
            7 => Some(Value::Null),
            8 => Some(self.json(TEXTS, 2)),
            9 => Some(empty(sample)),
            _ => Some(self.inside(sample)),
        }
    }

    fn inside(&mut self, sample: &Value) -> Value {
        match sample {
            Value::Object(members) => {
                let kept = members.iter().filter_map(|(name, member)| Some((name.clone(), self.part(member)?)));
                let mut kept: Map<String, Value> = kept.collect();
                if self.byte() == 1 {
                    kept.insert(self.pick(TEXTS).to_owned(), self.json(TEXTS, 2));
                }
                kept.into()
            }
            Value::Array(items) => self.items(items).into(),
            Value::Bool(value) => (!value).into(),
            Value::Number(_) => self.number(),
            Value::String(_) | Value::Null => self.pick(TEXTS).into(),
        }
    }

    fn items(&mut self, items: &[Value]) -> Vec<Value> {
        let mut kept: Vec<Value> = items.iter().filter_map(|item| self.part(item)).collect();
        match (self.below(8), kept.first().cloned()) {
            (1, _) => kept.reverse(),
            (2, Some(first)) => kept.push(first),
            (3, Some(first)) => kept.push(self.inside(&first)),
            _ => {}
        }
        kept
    }
}

const OPERATIONS: &[&str] = &["replace", "add", "remove", "copy", "move", "test"];

/// Strings with a meaning for some field.
#[rustfmt::skip]
const TEXTS: &[&str] = &[
    "a", "b", "", "web", "default", "1", "-1", "true", "null", "10%", "500m", "1Gi", "1h", "2026-01-01T00:00:00Z",
    "10.0.0.1", "TCP", "Always", "example.com/hold", "foregroundDeletion", "é", "\u{0}", "f:spec", "$patch", ".",
];

fn empty(sample: &Value) -> Value {
    match sample {
        Value::Object(_) => json!({}),
        Value::Array(_) => json!([]),
        Value::String(_) => "".into(),
        _ => 0.into(),
    }
}
