//! Tests with recorded objects of every kind.

use std::io::BufRead;

use serde_json::Value;

use super::*;
use crate::kinds::{Catalog, form, types};
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

/// Decodes an object and compares it with the JSON form.
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
    truth::same(&decoded, &formed).map_err(|found| format!("decoded: {found}"))
}

#[test]
fn objects_of_every_kind_match_the_go_libraries() {
    let mut agreement = Agreement::of("twins in JSON and protobuf");
    let mut file = truth::open("protobuf");
    while let Some(twins) = next_twins(&mut file) {
        if !twins.kind.ends_with("List") {
            agreement.count(&format!("{} {}", twins.api_version, twins.kind), check(&twins));
        }
    }
    let kinds = agreement.conclude();
    for resource in Catalog::built_in().iter() {
        let kind = format!("{} {}", resource.api_version(), resource.kind);
        assert!(kinds.contains(&kind), "there is no case of {kind}");
    }
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
