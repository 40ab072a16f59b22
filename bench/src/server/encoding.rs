//! Encodes lists and events around encoded objects.

use super::protobuf::{envelope_head, field, field_head, number_field};
use crate::objects::Kind;

/// The encoding that a client prefers, and gets if the server has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Protobuf,
}

/// The metadata of a list.
pub(super) struct ListMeta {
    pub(super) version: u64,
    /// The start of the next page, and the number of remaining objects.
    pub(super) next: Option<(usize, usize)>,
}

impl Encoding {
    /// Returns the first encoding in the header `Accept`.
    pub(super) fn asked_for(accept: &str) -> Self {
        let first = accept.split(',').next().unwrap_or_default();
        if first.contains("application/vnd.kubernetes.protobuf") { Self::Protobuf } else { Self::Json }
    }

    pub(super) fn content_type(self, watch: bool) -> &'static str {
        match (self, watch) {
            (Self::Json, _) => "application/json",
            (Self::Protobuf, false) => "application/vnd.kubernetes.protobuf",
            (Self::Protobuf, true) => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    /// Appends an event.
    pub(super) fn event(self, to: &mut Vec<u8>, name: &str, kind: Kind, object: &[u8]) {
        let (api_version, kind) = kind.type_meta();
        match self {
            Self::Json => json_event(to, name, object),
            Self::Protobuf => protobuf_event(to, name, (api_version, kind), object),
        }
    }

    /// Appends the bookmark after the initial events.
    pub(super) fn initial_events_end(self, to: &mut Vec<u8>, kind: Kind, version: u64) {
        const MARK: &str = "k8s.io/initial-events-end";
        let (api_version, name) = kind.type_meta();
        match self {
            Self::Json => {
                let metadata = format!(
                    r#"{{"resourceVersion":"{version:010}","creationTimestamp":null,"annotations":{{"{MARK}":"true"}}}}"#
                );
                let rest = if kind == Kind::Pods { r#","spec":{"containers":null},"status":{}"# } else { "" };
                let object = format!(r#"{{"kind":"{name}","apiVersion":"{api_version}","metadata":{metadata}{rest}}}"#);
                json_event(to, "BOOKMARK", object.as_bytes());
            }
            Self::Protobuf => {
                let [mut annotation, mut metadata, mut object] = [const { Vec::new() }; 3];
                field(&mut annotation, 1, MARK.as_bytes());
                field(&mut annotation, 2, b"true");
                field(&mut metadata, 6, format!("{version:010}").as_bytes());
                field(&mut metadata, 12, &annotation);
                field(&mut object, 1, &metadata);
                protobuf_event(to, "BOOKMARK", (api_version, name), &object);
            }
        }
    }

    /// Appends the error event for a version that is too old.
    pub(super) fn expired(self, to: &mut Vec<u8>) {
        const MESSAGE: &str = "too old resource version";
        match self {
            Self::Json => {
                let status = format!(
                    r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{MESSAGE}","reason":"Expired","code":410}}"#
                );
                json_event(to, "ERROR", status.as_bytes());
            }
            Self::Protobuf => {
                let mut status = Vec::new();
                field(&mut status, 1, &[]);
                field(&mut status, 2, b"Failure");
                field(&mut status, 3, MESSAGE.as_bytes());
                field(&mut status, 4, b"Expired");
                number_field(&mut status, 6, 410);
                protobuf_event(to, "ERROR", ("v1", "Status"), &status);
            }
        }
    }

    /// Appends an object in the form that it has in a list.
    pub(super) fn item(self, to: &mut Vec<u8>, kind: Kind, first: bool, object: &[u8]) {
        match self {
            Self::Json => {
                if !first {
                    to.push(b',');
                }
                to.extend_from_slice(&[b"{" as &[u8], without_type(kind, object)].concat());
            }
            Self::Protobuf => field(to, 2, object),
        }
    }

    /// Returns the bytes before and after the items of a list.
    pub(super) fn around_items<'o>(
        self,
        kind: Kind,
        meta: &ListMeta,
        items: impl Iterator<Item = &'o [u8]>,
    ) -> (Vec<u8>, Vec<u8>) {
        let (api_version, name) = kind.type_meta();
        match self {
            Self::Json => json_list(name, api_version, kind == Kind::Widgets, meta),
            Self::Protobuf => {
                let [mut metadata, mut list] = [const { Vec::new() }; 2];
                field(&mut metadata, 2, format!("{:010}", meta.version).as_bytes());
                if let Some((next, left)) = meta.next {
                    field(&mut metadata, 3, next.to_string().as_bytes());
                    number_field(&mut metadata, 4, left);
                }
                field(&mut list, 1, &metadata);
                let mut length = list.len();
                let mut head = Vec::new();
                for item in items {
                    head.clear();
                    field_head(&mut head, 2, item.len());
                    length += head.len() + item.len();
                }
                head.clear();
                envelope_head(&mut head, api_version, &format!("{name}List"), length);
                head.extend_from_slice(&list);
                (head, Vec::new())
            }
        }
    }
}

/// Returns how many bytes an event is longer than its object.
pub(super) fn json_event_overhead(name: &str) -> usize {
    let mut event = Vec::new();
    json_event(&mut event, name, b"");
    event.len()
}

/// Removes `kind` and `apiVersion`, which objects in a list of a built-in kind do not have.
fn without_type(kind: Kind, object: &[u8]) -> &[u8] {
    let skipped = match (kind, kind.type_meta()) {
        (Kind::Widgets, _) => 1,
        (_, (api_version, name)) => format!(r#"{{"kind":"{name}","apiVersion":"{api_version}","#).len(),
    };
    &object[skipped..]
}

fn json_event(to: &mut Vec<u8>, name: &str, object: &[u8]) {
    to.extend_from_slice(br#"{"type":""#);
    to.extend_from_slice(name.as_bytes());
    to.extend_from_slice(br#"","object":"#);
    to.extend_from_slice(object);
    to.extend_from_slice(b"}\n");
}

fn json_list(name: &str, api_version: &str, metadata_last: bool, meta: &ListMeta) -> (Vec<u8>, Vec<u8>) {
    let next = match meta.next {
        Some((next, left)) => format!(r#","continue":"{next}","remainingItemCount":{left}"#),
        None => String::new(),
    };
    let metadata = format!(r#""metadata":{{"resourceVersion":"{:010}"{next}}}"#, meta.version);
    let (head, tail) = if metadata_last {
        let head = format!(r#"{{"apiVersion":"{api_version}","items":["#);
        (head, format!(r#"],"kind":"{name}List",{metadata}}}"#))
    } else {
        let head = format!(r#"{{"kind":"{name}List","apiVersion":"{api_version}",{metadata},"items":["#);
        (head, "]}".to_owned())
    };
    (head.into_bytes(), (tail + "\n").into_bytes())
}

/// Appends a frame: its length, then the event. Only the object has an envelope.
fn protobuf_event(to: &mut Vec<u8>, name: &str, (api_version, kind): (&str, &str), object: &[u8]) {
    let [mut envelope, mut raw, mut event] = [const { Vec::new() }; 3];
    envelope_head(&mut envelope, api_version, kind, object.len());
    field_head(&mut raw, 1, envelope.len() + object.len());
    field(&mut event, 1, name.as_bytes());
    field_head(&mut event, 2, raw.len() + envelope.len() + object.len());
    let before = [event, raw, envelope].concat();
    to.extend_from_slice(&((before.len() + object.len()) as u32).to_be_bytes());
    to.extend_from_slice(&before);
    to.extend_from_slice(object);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_first_accepted_encoding_is_used() {
        let check = |accept, expected| assert_eq!(Encoding::asked_for(accept), expected, "{accept}");
        check("application/vnd.kubernetes.protobuf,application/json", Encoding::Protobuf);
        check("application/json, application/vnd.kubernetes.protobuf", Encoding::Json);
        check("*/*", Encoding::Json);
    }

    #[test]
    fn a_page_names_the_start_of_the_next() {
        let pod = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#;
        let widget = br#"{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{"name":"a"}}"#;
        let list = |kind, object: &[u8]| -> Value {
            let meta = ListMeta { version: 12, next: Some((500, 7)) };
            let (mut list, tail) = Encoding::Json.around_items(kind, &meta, std::iter::empty());
            Encoding::Json.item(&mut list, kind, true, object);
            Encoding::Json.item(&mut list, kind, false, object);
            serde_json::from_slice(&[list, tail].concat()).unwrap()
        };
        let metadata = json!({"resourceVersion": "0000000012", "continue": "500", "remainingItemCount": 7});
        let item = json!({"metadata": {"name": "a"}});
        let expected = json!({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": [item, item]});
        assert_eq!(list(Kind::Pods, pod), expected);
        let widgets = list(Kind::Widgets, widget);
        assert_eq!((&widgets["kind"], &widgets["items"][1]["kind"]), (&json!("WidgetList"), &json!("Widget")));
        assert_eq!(widgets["metadata"], metadata);
    }

    #[test]
    fn events_are_lines_of_json() {
        let mut lines = Vec::new();
        Encoding::Json.event(&mut lines, "ADDED", Kind::Pods, b"{}");
        assert_eq!(lines.len(), 2 + json_event_overhead("ADDED"));
        Encoding::Json.initial_events_end(&mut lines, Kind::Pods, 7);
        Encoding::Json.expired(&mut lines);
        let text = String::from_utf8(lines).unwrap();
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events[0], json!({"type": "ADDED", "object": {}}));
        assert_eq!(events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
        assert_eq!(events[2]["object"]["code"], 410);
    }

    #[test]
    fn a_frame_has_the_length_in_its_prefix() {
        let mut frame = Vec::new();
        Encoding::Protobuf.event(&mut frame, "ADDED", Kind::Pods, &[7; 300]);
        let length = u32::from_be_bytes(frame[..4].try_into().unwrap());
        assert_eq!(length as usize, frame.len() - 4);
        assert!(frame[4..].starts_with(b"\x0a\x05ADDED\x12") && frame.ends_with(&[7; 300]));
    }

    #[test]
    fn a_protobuf_list_has_the_length_in_its_envelope() {
        let object = [7; 300];
        let meta = ListMeta { version: 12, next: None };
        let (mut list, tail) = Encoding::Protobuf.around_items(Kind::Pods, &meta, [&object[..]; 2].into_iter());
        let head = list.len();
        Encoding::Protobuf.item(&mut list, Kind::Pods, true, &object);
        Encoding::Protobuf.item(&mut list, Kind::Pods, false, &object);
        // The metadata of the list take 14 bytes: a field with a version of ten digits.
        let expected = 14 + 2 * 303;
        let mut envelope = Vec::new();
        envelope_head(&mut envelope, "v1", "PodList", expected);
        assert_eq!((list.len() - head + 14, tail.len()), (expected, 0));
        assert!(list.starts_with(&envelope));
    }
}
