use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::object::Object as _;

fn types() -> Types {
    Types::new("v1".to_owned(), "Pod".to_owned())
}

/// Parses an object with `serde_json`, and removes the managed fields.
fn plain(json: &str) -> Option<Value> {
    let mut value: Value = serde_json::from_str(json).ok().filter(Value::is_object)?;
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    } else if value["metadata"].is_null() && !json.contains("metadata") {
        value.as_object_mut()?.remove("metadata");
    }
    Some(value)
}

#[track_caller]
fn check(json: &str) {
    match (Raw::new(json.as_bytes()), plain(json)) {
        (Ok(raw), Some(expected)) => {
            assert_eq!(raw.deserialize::<Value>().unwrap(), expected, "{json}");
            let metadata = serde_json::from_str(raw.metadata_json()).unwrap_or(Value::Null);
            assert_eq!(metadata, expected.get("metadata").cloned().unwrap_or_default(), "{json}");
        }
        (Ok(raw), None) => assert!(raw.deserialize::<Value>().is_err(), "{json} was taken for JSON"),
        (Err(error), Some(_)) => panic!("{json} was refused: {error}"),
        (Err(_), None) => {}
    }
}

#[test]
fn managed_fields_are_removed_at_every_position() {
    for metadata in [
        r#"{"managedFields":[{"a":1}]}"#,
        r#"{ "managedFields" : [ ] }"#,
        r#"{"name":"a","managedFields":[{"a":"]}\"{"}]}"#,
        r#"{"managedFields":[{"a":1}] , "name":"a"}"#,
        r#"{"name":"a", "managedFields":null , "uid":"u"}"#,
        r#"{"name":"a","managedFields":[],"managedFields":[]}"#,
        r#"{"name":"a","\u006danagedFields":[1]}"#,
        r#"{"name":"a"}"#,
        "{}",
        "null",
    ] {
        check(&format!(r#"{{"metadata":{metadata},"spec":{{"x":[1,2.5,true,null,"q"]}}}}"#));
        check(&format!(r#" {{ "spec" : {{}} , "metadata" : {metadata} }} "#));
        check(&format!(r#"{{"metadata":{metadata},"metadata":{metadata}}}"#));
    }
}

#[test]
fn managed_fields_are_kept_on_request() {
    let json = r#"{"metadata":{"name":"a","managedFields":[1]}}"#;
    assert_eq!(Raw::read(json.as_bytes(), ManagedFields::Keep, None, String::new()).unwrap().json(), json);
    let odd = r#"{"metadata":{},"metadata":{"managedFields":[1],"name":"a"}}"#;
    assert_eq!(
        Raw::read(odd.as_bytes(), ManagedFields::Keep, None, String::new()).unwrap().json(),
        json.replacen(r#""name":"a","managedFields":[1]"#, r#""managedFields":[1],"name":"a""#, 1)
    );
}

#[test]
fn typed_objects_lose_only_their_managed_fields() {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "a", "namespace": "web", "labels": {"managedFields": "a label, kept"},
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:metadata": {"f:labels": {}}}}],
            "annotations": {"note": "line\nbreak"},
        },
        "spec": {"containers": [{"name": "c", "env": [{"name": "metadata", "value": "x"}]}]},
        "status": {"phase": "Running"},
    });
    let json = serde_json::to_vec(&pod).unwrap();
    pod["metadata"].as_object_mut().unwrap().remove("managedFields");
    let raw = Raw::read(&json, ManagedFields::Skip, Some(&types()), String::new()).unwrap();
    assert_eq!(raw.deserialize::<Pod>().unwrap(), serde_json::from_value(pod.clone()).unwrap());
    let dynamic: kube_core::DynamicObject = raw.deserialize().unwrap();
    assert_eq!(serde_json::to_value(dynamic).unwrap(), pod);
}

#[test]
fn the_last_duplicate_key_counts_in_metadata_too() {
    let json = br#"{"metadata":{"name":"a","name":"b","labels":{"l":"1"},"labels":{"l":"2"},"ownerReferences":[{"uid":"1","uid":"2"}]}}"#;
    let raw = Raw::new(json).unwrap();
    let (metadata, pod) = (raw.metadata().unwrap(), raw.deserialize::<Pod>().unwrap());
    assert_eq!((metadata.id(), metadata.label("l")), (pod.id(), pod.label("l")));
    assert_eq!((metadata.name(), metadata.label("l")), ("b", Some("2")));
    metadata.each_owner(&mut |owner| assert_eq!(owner.uid, "2"));
}

fn read(json: &str) -> Result<Value, DecodeError> {
    Raw::read(json.as_bytes(), ManagedFields::Skip, Some(&types()), String::new())?.deserialize()
}

#[test]
fn an_object_of_another_kind_is_refused() {
    for secret in [
        r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}"#,
        r#"{"metadata":{"name":"a"},"\u006bind":"Secret"}"#,
        r#"{"kind":"Pod","metadata":{"name":"a"},"kind":"Secret"}"#,
    ] {
        let refused = DecodeError::WrongKind { expected: "Pod".to_owned(), got: "Secret".to_owned() };
        assert_eq!(read(secret).unwrap_err(), refused, "{secret}");
    }
    assert!(matches!(read(r#"{"kind":5}"#), Err(DecodeError::Shape(_))));
    assert!(matches!(read(r#"{"kind":"Pod","apiVersion":[]}"#), Err(DecodeError::Shape(_))));
}

#[test]
fn an_object_without_a_kind_is_decoded_as_the_expected_kind() {
    let expected = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    for json in [
        r#"{"metadata":{"name":"a"}}"#,
        r#"{"metadata":{"name":"a","managedFields":[]}}"#,
        r#" { "metadata":{"managedFields":[{}],"name":"a"} } "#,
        r#"{"kind":"","metadata":{"name":"a"},"apiVersion":""}"#,
        r#"{"kind":"Pod","metadata":{"name":"a"}}"#,
        r#"{"metadata":{"name":"a"},"apiVersion":"v1"}"#,
        r#"{"kind":"Pod","metadata":{"name":"a"},"apiVersion":null}"#,
        r#"{"kind":null,"metadata":{"name":"a"},"apiVersion":null}"#,
    ] {
        assert_eq!(read(json).unwrap(), expected, "{json}");
        let raw = Raw::read(json.as_bytes(), ManagedFields::Skip, Some(&types()), String::new()).unwrap();
        assert_eq!(raw.metadata().unwrap().name(), "a", "{json}");
    }
    assert_eq!(read("{}").unwrap(), json!({"apiVersion": "v1", "kind": "Pod"}));
}

#[test]
fn debug_output_shows_no_content() {
    let raw = Raw::new(br#"{"metadata":{"name":"a"},"data":{"password":"hunter2"}}"#).unwrap();
    assert_eq!(format!("{raw:?}"), "Raw { bytes: 55, .. }");
}

#[test]
fn unbalanced_json_is_refused() {
    for json in
        ["", "[]", "3", "null", "{", "{}}", r#"{"a"}"#, r#"{"a":}"#, r#"{"a":[}"#, r#"{"a":"x}"#, r#"{"a":1,}"#, "{} x"]
    {
        assert!(Raw::new(json.as_bytes()).is_err(), "{json}");
    }
    assert!(matches!(Raw::new(b"{\"a\":\"\xff\"}"), Err(DecodeError::NotUtf8)));
    assert!(Raw::new(b"{\"a\":\"\x01\"}").is_err(), "a byte that no JSON has");
    let deep = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    let read = |depth| Raw::new(deep(depth).as_bytes()).unwrap().deserialize::<Value>().is_ok();
    assert!(read(126) && !read(100_000));
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        r#"[a-z"\\{}\[\],: \n]{0,12}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let key = prop_oneof![Just("managedFields".to_owned()), Just("metadata".to_owned()), r#"[a-z"\\{}]{0,6}"#];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn an_object_without_managed_fields_equals_the_parsed_one(metadata in tree(), rest in tree(), managed in tree(), pretty: bool) {
        let mut object = json!({"aaa": rest, "metadata": metadata, "zzz": rest});
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.insert("managedFields".to_owned(), managed);
        }
        let json = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) }.unwrap();
        check(&json);
    }

    #[test]
    fn garbage_is_an_error_or_an_object_and_never_a_panic(body in prop::collection::vec(prop::sample::select(&br#"{}[]"",,::\ amn1"#[..]), 0..60)) {
        check(std::str::from_utf8(&body).unwrap());
        let _ = read(std::str::from_utf8(&body).unwrap());
    }
}

#[test]
fn an_object_that_does_not_fit_names_the_field() {
    let refused = |spec: &str| {
        let json = format!(r#"{{"metadata":{{"name":"a","managedFields":[{{"a":1}}]}},"spec":{spec}}}"#);
        Raw::new(json.as_bytes()).unwrap().deserialize::<Pod>().expect_err(spec).to_string()
    };
    assert_eq!(
        refused(r#"{"containers":[{"name":"x"},{"name":"y","ports":[{"containerPort":"hunter2"}]}]}"#),
        "object does not fit its type: spec.containers[1].ports[0].containerPort: expected i32"
    );
    assert_eq!(
        refused(r#"{"nodeSelector":{"example.com/zone":["hunter2"]},"containers":[]}"#),
        r#"object does not fit its type: spec.nodeSelector["example.com/zone"]: expected a string"#
    );
}

#[test]
fn metadata_that_does_not_fit_names_the_field() {
    let raw =
        Raw::new(br#"{"spec":{"a":1},"metadata":{"name":"a","ownerReferences":[{"uid":"u"},{"uid":7}]}}"#).unwrap();
    let error = raw.metadata().unwrap_err().to_string();
    assert_eq!(error, "object does not fit its type: metadata.ownerReferences[1].uid: expected a text");
}
