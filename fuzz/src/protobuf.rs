//! Objects in protobuf, for the embedded server.

use kube_embedded_apiserver::ApiServer;
use serde_json::Value;

use crate::ask::{Answer, Ask, JSON, PROTOBUF, YAML, differences, encoded, settled};
use crate::choices::Choices;
use crate::samples::{SAMPLES, Sample};

/// The first bytes of every message.
const MAGIC: &[u8] = b"k8s\0";
/// Deeper than the server reads.
const DEEPEST: usize = 110;

/// A protobuf body for create, update and delete: the server accepts or refuses it. An accepted object can be read in
/// every format, and an update with the response does not change the version.
///
/// The first byte chooses the kind, the second how the rest becomes a body: unchanged, as a message, or field by field.
pub fn protobuf(input: &[u8]) {
    let mut choices = Choices::new(input);
    let sample = &SAMPLES[choices.below(SAMPLES.len())];
    let body = match choices.below(4) {
        0 => choices.rest().to_vec(),
        1 => sealed(sample.api_version(), sample.kind(), choices.rest()),
        2 => sealed("v1", "DeleteOptions", &message(&mut choices, 0)),
        _ => sealed(sample.api_version(), sample.kind(), &message(&mut choices, 0)),
    };
    let server = ApiServer::builder().seed(1).build();
    crate::run(async {
        created(&server, sample, &body).await;
        sample.put(&server);
        if send(&server, "PUT", &sample.path(), PROTOBUF, body.clone()).await.is_success() {
            stays(&server, &sample.path()).await;
        }
        send(&server, "DELETE", &sample.path(), PROTOBUF, body).await;
        settled().await;
    });
}

/// Creates an object from the body, and deletes it.
async fn created(server: &ApiServer, sample: &Sample, body: &[u8]) {
    let answer = send(server, "POST", &sample.collection, PROTOBUF, body.to_vec()).await;
    if !answer.is_success() {
        return;
    }
    let created = answer.value();
    let name = created["metadata"]["name"].as_str().unwrap_or_else(|| panic!("no name: {created}"));
    let path = format!("{}/{}", sample.collection, encoded(name));
    settled().await;
    stays(server, &path).await;
    let namespace = created["metadata"]["namespace"].as_str();
    server.patch(sample.resource, namespace, name, serde_json::json!({"metadata": {"finalizers": null}})).expect(&path);
    // Namespaces and CRDs take some time to be deleted.
    let _ = server.delete(sample.resource, namespace, name);
}

/// Checks that the object at this path can be read in every format, and that an update with each response changes
/// nothing.
async fn stays(server: &ApiServer, path: &str) {
    let before = read(server, path).await;
    for format in [JSON, YAML] {
        let shown = Ask { accept: format, ..Ask::get(path) }.send(server).await;
        assert_eq!(shown.code, 200, "{path} in {format}: {shown:?}");
        let again = send(server, "PUT", path, format, shown.body.to_vec()).await;
        assert_eq!(again.code, 200, "{path} put back in {format}: {again:?}, it was {before}");
        let changes = differences(&before, &read(server, path).await);
        assert!(changes.is_empty(), "{path} put back in {format}: {changes:#?}");
    }
}

async fn read(server: &ApiServer, path: &str) -> Value {
    let answer = Ask::get(path).send(server).await;
    assert_eq!(answer.code, 200, "{path}: {answer:?}");
    answer.value()
}

async fn send(server: &ApiServer, method: &str, target: &str, content_type: &str, body: Vec<u8>) -> Answer {
    Ask { method, target, content_type, accept: JSON, body }.send(server).await
}

/// Returns a message in its envelope.
fn sealed(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let (mut meta, mut body) = (Vec::new(), MAGIC.to_vec());
    put_bytes(1, api_version.as_bytes(), &mut meta);
    put_bytes(2, kind.as_bytes(), &mut meta);
    put_bytes(1, &meta, &mut body);
    put_bytes(2, message, &mut body);
    body
}

/// Builds a message field by field: two bits of a byte are the type of the field, or the end; six are its number.
fn message(choices: &mut Choices<'_>, level: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while !choices.is_empty() {
        let byte = choices.byte();
        let number = u64::from(byte & 0x3f);
        match byte >> 6 {
            0 if number == 0 => return out,
            0 => put_number(number, choices, &mut out),
            1 => {
                let length = usize::from(choices.byte());
                put_bytes(number, choices.take(length), &mut out);
            }
            2 if level < DEEPEST => put_bytes(number, &message(choices, level + 1), &mut out),
            2 => return out,
            _ => {
                put_varint(number << 3 | 1, &mut out);
                out.extend(std::iter::repeat_with(|| choices.byte()).take(8));
            }
        }
    }
    out
}

/// Appends a number: small ones take one byte of input, large ones eight.
fn put_number(number: u64, choices: &mut Choices<'_>, out: &mut Vec<u8>) {
    let value = match choices.byte() {
        0xff => choices.take(8).iter().fold(0, |value, byte| value << 8 | u64::from(*byte)),
        0xfe => u64::MAX,
        small => u64::from(small),
    };
    put_varint(number << 3, out);
    put_varint(value, out);
}

fn put_bytes(number: u64, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(number << 3 | 2, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
