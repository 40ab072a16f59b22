//! Tests with hand-written messages, and with recorded objects of every kind.

use std::io::BufRead;

use serde_json::json;

use super::*;
use crate::kinds::{Catalog, form};
use crate::truth::{self, Agreement};

/// An object in JSON, and the same object in its envelope.
struct Twins {
    api_version: String,
    kind: String,
    json: Value,
    sealed: Vec<u8>,
}

/// Returns the next recorded object: a line with both lengths, then both forms.
fn next_twins(from: &mut impl BufRead) -> Option<Twins> {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    let mut words = line.split_whitespace();
    let (api_version, kind) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut part = |length: &str| {
        let mut bytes = vec![0; length.parse().unwrap()];
        from.read_exact(&mut bytes).unwrap();
        bytes
    };
    let (json, sealed) = (part(words.next()?), part(words.next()?));
    Some(Twins { api_version, kind, json: serde_json::from_slice(&json).unwrap(), sealed })
}

/// Decodes an object and compares it with the JSON form. Encodes that and compares the bytes.
fn check(twins: &Twins) -> Result<(), String> {
    let Twins { api_version, kind, json, sealed } = twins;
    let of = types::kind(api_version, kind).ok_or("not a kind of ours")?;
    let envelope = open(sealed).map_err(|_| "the envelope is broken")?;
    assert_eq!((envelope.api_version, envelope.kind), (api_version.as_str(), kind.as_str()));
    let formed = form::form(of, json.clone())?.object;
    // The envelope has the kind of the object.
    let mut decoded = decode(of, envelope.message).map_err(|_| "the message is broken")?;
    decoded["apiVersion"] = json["apiVersion"].clone();
    decoded["kind"] = json["kind"].clone();
    truth::same(&decoded, &formed).map_err(|found| format!("decoded: {found}"))?;
    let encoded = seal(api_version, kind, &encode(of, &formed));
    if encoded == *sealed {
        return Ok(());
    }
    Err(format!("encoded: field {}\n    {json}", difference(&encoded[MAGIC.len()..], &sealed[MAGIC.len()..])))
}

/// Returns the first difference between two messages, as field numbers and values.
fn difference(ours: &[u8], theirs: &[u8]) -> String {
    let (mut a, mut b) = (fields(ours), fields(theirs));
    loop {
        match (a.next(), b.next()) {
            (Some(Ok((number, Field::Bytes(a)))), Some(Ok((other, Field::Bytes(b))))) if number == other && a != b => {
                let are_messages = [a, b].iter().all(|bytes| fields(bytes).all(|field| field.is_ok()));
                let inner = if are_messages { difference(a, b) } else { format!("{a:?}, theirs {b:?}") };
                return format!("{number}.{inner}");
            }
            (None, None) => return "nowhere".to_owned(),
            (a, b) if a == b => {}
            (a, b) => return format!("ours {a:?}, theirs {b:?}"),
        }
    }
}

/// Checks a list, which is never decoded, and is encoded from the messages of its items.
fn check_list(twins: &Twins) -> Result<(), String> {
    let Twins { api_version, kind, json, sealed } = twins;
    let of = types::kind(api_version, kind.trim_end_matches("List")).ok_or("not a kind of ours")?;
    let mut items = Vec::new();
    for item in json["items"].as_array().into_iter().flatten() {
        items.push(encode(of, &form::form(of, item.clone())?.object).into());
    }
    let ours = seal_list(api_version, kind, &json["metadata"], items.into_iter());
    (ours == *sealed).then_some(()).ok_or_else(|| format!("{json}"))
}

#[test]
fn objects_of_every_kind_match_the_go_libraries() {
    let mut agreement = Agreement::of("twins in JSON and protobuf");
    let mut file = truth::open("protobuf");
    while let Some(twins) = next_twins(&mut file) {
        let outcome = if twins.kind == "ConfigMapList" { check_list(&twins) } else { check(&twins) };
        agreement.count(&format!("{} {}", twins.api_version, twins.kind), outcome);
    }
    let kinds = agreement.conclude();
    for resource in Catalog::built_in().iter() {
        let kind = format!("{} {}", resource.api_version(), resource.kind);
        assert!(kinds.contains(&kind), "there is no case of {kind}");
    }
}

#[test]
fn bookmark_frame_matches_kube_apiserver() {
    let of = types::named("core/v1.ConfigMap").unwrap();
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}});
    let framed = frame("BOOKMARK", &seal_object(of, &object));
    assert_eq!(framed[..4], [0, 0, 0, 60]);
    assert_eq!(&framed[4..14], b"\x0a\x08BOOKMARK");
    let object_at = framed.windows(4).position(|part| part == MAGIC).unwrap();
    assert_eq!(framed[framed.len() - 4..], [0x1a, 0, 0x22, 0]);
    let envelope = open(&framed[object_at..]).unwrap();
    assert_eq!((envelope.api_version, envelope.kind), ("v1", "ConfigMap"));
    assert_eq!(decode(of, envelope.message).unwrap(), json!({"metadata": {"resourceVersion": "7"}}));
}

#[test]
fn object_survives_encode_and_decode() {
    let of = types::named("apps/v1.Deployment").unwrap();
    let object = json!({
        "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "1", "b": ""}},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "1"}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": -1}},
            "template": {"metadata": {"labels": {"a": "1"}}, "spec": {
                "containers": [{"name": "c", "args": ["x", ""], "resources": {"limits": {"cpu": "500m"}}}],
                "volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}]}}},
    });
    let object = crate::kinds::form::form(of, object).unwrap().object;
    assert_eq!(decode(of, &encode(of, &object)).unwrap(), object);
}

#[test]
fn broken_bytes_are_refused() {
    let of = types::named("core/v1.Pod").unwrap();
    for bytes in [&b"\x0a"[..], b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x02\x0a\x05", b"\x07", b"\x08\x01"] {
        assert!(decode(of, bytes).is_err(), "{bytes:?}");
    }
    assert!(open(b"{}").is_err());
    assert!(open(b"k8s\0\x0a\x09").is_err());
}
