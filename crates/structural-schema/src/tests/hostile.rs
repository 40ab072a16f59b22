//! Hostile input does not stop the server or keep it busy.

use super::{parse, with_spec};
use crate::PrinterColumns;
use serde_json::{Map, Value, json};

/// A small generator: the same seed gives the same cases on every platform.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

const FIELDS: [&str; 24] = [
    "type",
    "properties",
    "items",
    "additionalProperties",
    "required",
    "enum",
    "default",
    "nullable",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "multipleOf",
    "maxLength",
    "minItems",
    "allOf",
    "anyOf",
    "not",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-validations",
];

const RULES: [&str; 14] = [
    "self.a == 1",
    "self.all(x, x > 1)",
    "size(self) < 2",
    "self == oldSelf",
    "self.map(x, [x, x]).map(y, [y, y])",
    "'%s'.format([self])",
    "{self: self}",
    "self.?a.orValue(1)",
    "((((",
    "\"",
    "a.b.c.d(e)",
    "self[0][?1]",
    "-9223372036854775808 / -1 == self",
    "duration('1h') + timestamp(self)",
];

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 7 } else { 10 }) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2 => json!(random.next() as i64),
        3 => json!(random.next()),
        4 => json!(f64::from_bits(random.next())),
        5 => json!(*random.pick(&["", "a", "é", "\u{0}", "2020-01-01T00:00:00Z", "1h", "[a", "%", "map", "object"])),
        6 => json!(random.below(5)),
        7 => (0..random.below(4)).map(|_| value(random, depth - 1)).collect(),
        _ => {
            let names = ["a", "b", "metadata", "kind", "a-b", "x"];
            let pairs = (0..random.below(4)).map(|_| (random.pick(&names).to_string(), value(random, depth - 1)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

fn schema(random: &mut Random, depth: usize) -> Value {
    let mut fields = Map::new();
    let kinds = ["object", "array", "string", "integer", "number", "boolean"];
    fields.insert("type".to_owned(), json!(*random.pick(&kinds)));
    for _ in 0..random.below(5) {
        let name = *random.pick(&FIELDS);
        let held = match name {
            "properties" if depth > 0 => {
                let names = ["a", "b", "metadata", "a-b"];
                let pairs = (0..3).map(|_| (random.pick(&names).to_string(), schema(random, depth - 1)));
                Value::Object(pairs.collect())
            }
            "items" | "additionalProperties" | "not" if depth > 0 => schema(random, depth - 1),
            "allOf" | "anyOf" if depth > 0 => json!([schema(random, depth - 1)]),
            "x-kubernetes-validations" => json!([{"rule": *random.pick(&RULES)}]),
            "x-kubernetes-list-type" => json!(*random.pick(&["set", "map", "atomic"])),
            "x-kubernetes-list-map-keys" | "required" => json!(["a"]),
            "pattern" => json!(*random.pick(&["a", "[", "(a|b)*", "\\d{3}", "a{1000}{2}", "\\p{L}"])),
            "type" => json!(*random.pick(&kinds)),
            _ => value(random, 2),
        };
        fields.insert(name.to_owned(), held);
    }
    Value::Object(fields)
}

#[test]
fn random_schemas_and_values_never_panic() {
    let mut random = Random(0x5eed_5eed_5eed_5eed);
    let mut sound = 0;
    for _ in 0..4_000 {
        let spec = schema(&mut random, 3);
        let Ok(schema) = parse(&json!({"type": "object", "properties": {"spec": spec}})) else {
            continue;
        };
        sound += 1;
        for _ in 0..4 {
            let mut object = json!({"spec": value(&mut random, 4), "metadata": value(&mut random, 2)});
            let old = json!({"spec": value(&mut random, 4)});
            schema.prune(&mut object);
            schema.apply_defaults(&mut object).expect("small");
            schema.validate(&object, None);
            schema.validate(&object, Some(&old));
            let same = object.clone();
            schema.validate(&object, Some(&same));
        }
    }
    assert!(sound > 500, "{sound} schemas were sound");
}

#[test]
fn random_rules_patterns_and_paths_never_panic() {
    let parts = [
        "self",
        ".",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "?",
        ":",
        "'",
        "\"",
        "\\",
        "a",
        "1",
        "1.5",
        "u",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "==",
        "in",
        ",",
        " ",
        "all",
        "x",
        "%",
        "é",
        "has",
        "optional",
        "0x",
        "r'",
        "b'",
        "*",
        "|",
        "^",
        "$",
        "\n",
        "@",
        "9223372036854775808",
        "\\Q",
        "(?",
        "{2}",
        "[:alpha:]",
        "..",
        "map",
        "matches",
    ];
    let mut random = Random(77);
    for _ in 0..20_000 {
        let text: String = (0..random.below(12)).map(|_| *random.pick(&parts)).collect();
        let rule = json!({"type": "object", "properties": {"spec": {
            "type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}},
            "x-kubernetes-validations": [{"rule": text, "messageExpression": text, "fieldPath": text, "message": "m"}],
        }}});
        if let Ok(schema) = parse(&rule) {
            schema.validate(&json!({"spec": {"a": ["x"]}}), None);
        }
        let pattern = json!({"type": "object", "properties": {"spec": {"type": "string", "pattern": text}}});
        if let Ok(schema) = parse(&pattern) {
            schema.validate(&json!({"spec": "selfa1é"}), None);
        }
        let columns = PrinterColumns::parse(&[json!({"name": "A", "type": "string", "jsonPath": text})]);
        columns.cells(&json!({"a": [1, {"self": "x"}], "self": {"a": 1}}));
    }
}

#[test]
fn deep_and_wide_schemas_are_refused() {
    let mut deep = json!({"type": "string"});
    for _ in 0..120 {
        deep = json!({"type": "array", "items": deep});
    }
    assert!(parse(&json!({"type": "object", "properties": {"a": deep}})).is_err());
    let wide: Map<String, Value> = (0..70_000).map(|index| (index.to_string(), json!({"type": "string"}))).collect();
    assert!(parse(&json!({"type": "object", "properties": wide})).is_err());
}

#[test]
fn patterns_that_unroll_too_far_are_refused() {
    assert!(
        parse(&json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "((a{900}){900}){9}"}}}))
            .is_err()
    );
    let many: Map<String, Value> = (0..500)
        .map(|index| (index.to_string(), json!({"type": "string", "pattern": format!(".{{1000}}{index}")})))
        .collect();
    assert!(parse(&json!({"type": "object", "properties": many})).is_err());
}

#[test]
fn deeply_nested_expressions_are_refused() {
    for rule in [
        "(".repeat(50_000),
        "!".repeat(50_000) + "true",
        "[".repeat(5_000),
        format!("{}true", "true ? true : ".repeat(5_000)),
        format!("1{} == 1", "+1".repeat(5_000)),
        format!("self{} == 1", ".a".repeat(5_000)),
    ] {
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object", "properties": {}, "x-kubernetes-validations": [{"rule": rule}],
        }}});
        assert!(parse(&schema).is_err() || rule.starts_with('!'));
    }
    let chain = vec!["true"; 5_000].join(" && ");
    with_spec(json!({"type": "object", "x-kubernetes-validations": [{"rule": chain, "message": "m"}]}));
}

#[test]
fn expensive_rules_are_stopped() {
    let items: Vec<i64> = (0..2_000).collect();
    for rule in [
        "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))",
        "self.map(a, self.map(b, self.map(c, [a, b, c]))).size() > 0",
        "lists.range(1000000000).size() > 0",
        "self.map(x, 'aaaaaaaaaaaaaaaaaaaa').map(x, x.replace('a', 'aaaaaaaaaaaaaaaaaaaa').replace('a', \
         'aaaaaaaaaaaaaaaaaaaa').replace('a', 'aaaaaaaaaaaaaaaaaaaa')).size() > 0",
        "self.all(x, string(x).matches('(a{1,100}){1,' + string(x % 90 + 1) + '}') || true)",
    ] {
        let schema = with_spec(json!({
            "type": "array", "items": {"type": "integer"},
            "x-kubernetes-validations": [{"rule": rule, "message": "m"}],
        }));
        let causes = schema.validate(&json!({"spec": items}), None);
        assert_eq!(causes.len(), 1, "{rule}");
        assert!(causes[0].message.contains("cost"), "{rule}: {}", causes[0]);
    }
}

#[test]
fn copies_and_comparisons_in_rules_have_a_cost() {
    let object = json!({"spec": {
        "bytes": "QUFB".repeat(50_000), "text": "t".repeat(200_000), "zeros": "0".repeat(200_000), "texts": vec!["t".repeat(20_000); 10],
        "list": vec![0; 20_000], "free": {"a": "t".repeat(200_000)},
        "map": (0..20_000).map(|number| (format!("key{number}"), json!(number))).collect::<Map<_, _>>(),
    }});
    for rule in [
        "lists.range(2000).map(i, self.bytes).size() >= 0",
        "lists.range(2000).map(i, {self.text: i}).size() >= 0",
        "lists.range(2000).all(i, !(self.text in self.map))",
        "lists.range(2000).all(i, self.map.exists(k, true))",
        "lists.range(2000).all(i, sets.intersects(self.list, self.list))",
        "lists.range(2000).all(i, sets.contains([0], self.list) || true)",
        "lists.range(2000).all(i, self.text <= self.text)",
        "lists.range(2000).all(i, self.texts.isSorted())",
        "lists.range(2000).all(i, self.texts.sort().size() > 0)",
        "lists.range(2000).all(i, self.texts.min() != '')",
        "lists.range(2000).all(i, 'a'.indexOf(self.text) < 0)",
        "lists.range(2000).all(i, 'a'.lastIndexOf(self.text) < 0)",
        "lists.range(2000).all(i, 'a'.replace(self.text, 'b') == 'a')",
        "lists.range(2000).all(i, 'a'.split(self.text).size() == 1)",
        "lists.range(2000).all(i, int(self.zeros) == 0)",
        "lists.range(2000).all(i, double(self.zeros) == 0.0)",
        "lists.range(2000).all(i, self.free == self.free)",
        "lists.range(2000).all(i, self == self)",
    ] {
        let schema = with_spec(json!({
            "type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "m"}],
            "properties": {
                "bytes": {"type": "string", "format": "byte"}, "text": {"type": "string"}, "zeros": {"type": "string"},
                "texts": {"type": "array", "items": {"type": "string"}}, "list": {"type": "array", "items": {"type": "integer"}},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        }));
        let causes = schema.validate(&object, None);
        assert_eq!(causes.len(), 1, "{rule}");
        assert!(causes[0].message.contains("cost"), "{rule}: {}", causes[0]);
    }
}

#[test]
fn errors_of_many_embedded_resources_are_limited() {
    let schema = with_spec(json!({"type": "object", "additionalProperties": {"type": "array", "items": {
        "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
    }}}));
    let wrong = vec![json!({"metadata": {"unknown": 1}}); 3_000];
    let mut object = json!({"spec": {"x".repeat(100_000): wrong}});
    let causes = schema.validate(&object, None);
    assert!(causes.len() < 1_100, "{} causes", causes.len());
    let held: usize = causes.iter().map(|cause| cause.field.capacity() + cause.message.capacity()).sum();
    let said: usize = causes.iter().map(|cause| cause.field.len() + cause.message.len()).sum();
    assert!(held <= said + said / 4, "{held} bytes are held for {said}");
    let told: usize = schema.prune(&mut object).iter().map(String::len).sum();
    assert!(told < 8 << 20, "{told} bytes");
}

#[test]
fn errors_of_many_list_keys_are_limited() {
    let list = |keys: Vec<Value>, required: Vec<Value>| {
        let items = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": required});
        let list = json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys});
        parse(&json!({"type": "object", "properties": {"spec": list}})).unwrap_err()
    };
    let unknown = (0..100_000).map(|index| json!(format!("k{index}"))).collect();
    // Known, distinct and required: only a linear search for each of them would be slow.
    let mut required = vec![json!("b"); 100_000];
    required.push(json!("a"));
    for (keys, required) in [(unknown, Vec::new()), (vec![json!("a"); 100_000], required)] {
        let told: usize = list(keys, required).iter().map(|cause| cause.field.len() + cause.message.len()).sum();
        assert!(told < 8 << 20, "{told} bytes");
    }
}

#[test]
fn multiplying_defaults_are_refused() {
    let large = "x".repeat(100_000);
    let schema = with_spec(json!({
        "type": "array",
        "items": {"type": "object", "properties": {"a": {"type": "string", "default": large}}},
    }));
    let mut object = json!({"spec": vec![json!({}); 100_000]});
    assert!(schema.apply_defaults(&mut object).is_err());
}
