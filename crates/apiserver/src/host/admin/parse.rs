//! Reads faults from JSON.

use serde_json::Value;
use std::time::Duration;

use crate::fault::{Action, Fault, ListFlaw};
use crate::message::verb::Verb;

/// Every member that a description may have: the values of actions, and the conditions.
const MEMBERS: [&str; 24] = [
    "action",
    "at",
    "body",
    "bytes",
    "code",
    "count",
    "event",
    "events",
    "html",
    "line",
    "milliseconds",
    "retryAfter",
    "to",
    "version",
    "verb",
    "resource",
    "namespace",
    "userAgent",
    "queryContains",
    "nth",
    "since",
    "times",
    "probability",
    // For human readers.
    "comment",
];

/// Why a description is not a valid fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// A value that the action needs is missing or has another type.
    #[error("{0:?} is missing, or of another type")]
    Missing(&'static str),
    /// The action or verb is unknown.
    #[error("nothing is known as {0:?}")]
    Unknown(String),
    /// The description has an unknown member.
    #[error("no fault has a member {0:?}")]
    Member(String),
}

/// Reads a fault from JSON, in the format of the admin address: its kind, its values and its conditions.
///
/// ```
/// use kube_embedded_apiserver::{ApiServer, Fault};
/// # use serde_json::json;
/// let server = ApiServer::new();
/// let fault = json!({"action": "status", "code": 503, "verb": "list", "resource": "pods", "nth": 2});
/// server.faults().add(Fault::try_from(&fault).unwrap());
/// let wrong = Fault::try_from(&json!({"action": "explode"})).unwrap_err();
/// assert_eq!(wrong.to_string(), "nothing is known as \"explode\"");
/// ```
impl TryFrom<&Value> for Fault {
    type Error = FaultError;

    fn try_from(value: &Value) -> Result<Self, FaultError> {
        parse_fault(value)
    }
}

fn parse_fault(value: &Value) -> Result<Fault, FaultError> {
    // A misspelt condition would otherwise apply the fault to every request.
    let unknown = value.as_object().and_then(|members| members.keys().find(|name| !MEMBERS.contains(&name.as_str())));
    if let Some(name) = unknown {
        return Err(FaultError::Member(name.clone()));
    }
    let name = value["action"].as_str().ok_or(FaultError::Missing("action"))?;
    let mut fault = Fault::new(parse_action(name, value)?);
    if let Some(verb) = given(value, "verb", Value::as_str)? {
        fault = fault.verb(parse_verb(verb)?);
    }
    for (member, with) in [
        ("resource", Fault::resource as fn(Fault, String) -> Fault),
        ("namespace", Fault::namespace),
        ("userAgent", Fault::user_agent),
        ("queryContains", Fault::query_contains),
    ] {
        if let Some(text) = given(value, member, Value::as_str)? {
            fault = with(fault, text.to_owned());
        }
    }
    if let Some(nth) = given(value, "nth", Value::as_u64)? {
        fault = fault.nth(nth);
    }
    if let Some(since) = given(value, "since", Value::as_u64)? {
        fault = fault.since(since);
    }
    if let Some(times) = given(value, "times", Value::as_u64)? {
        fault = fault.times(times);
    }
    if let Some(probability) = given(value, "probability", Value::as_f64)? {
        fault = fault.probability(probability);
    }
    Ok(fault)
}

/// Reads an optional condition. A value of another type is an error.
fn given<'v, T>(
    value: &'v Value,
    member: &'static str,
    read: impl FnOnce(&'v Value) -> Option<T>,
) -> Result<Option<T>, FaultError> {
    match &value[member] {
        Value::Null => Ok(None),
        given => read(given).map(Some).ok_or(FaultError::Missing(member)),
    }
}

fn parse_action(name: &str, value: &Value) -> Result<Action, FaultError> {
    let number = |member: &'static str| value[member].as_u64().ok_or(FaultError::Missing(member));
    let size = |member: &'static str| {
        number(member).and_then(|number| usize::try_from(number).map_err(|_| FaultError::Missing(member)))
    };
    let code = || number("code").and_then(|code| u16::try_from(code).map_err(|_| FaultError::Missing("code")));
    let text = |member: &'static str| value[member].as_str().map(str::to_owned).ok_or(FaultError::Missing(member));
    let pause = |member: &'static str| number(member).map(Duration::from_millis);
    let retry_after = value["retryAfter"].as_u64().and_then(|seconds| u32::try_from(seconds).ok());
    Ok(match name {
        "reset_before_answer" => Action::ResetBeforeAnswer,
        "no_answer" => Action::NoAnswer,
        "delay" => Action::Delay(pause("milliseconds")?),
        "compact" => Action::Compact,
        "status" => Action::Status { code: code()?, retry_after },
        "version_too_large" => Action::VersionTooLarge,
        "page" => Action::Page {
            code: code()?,
            content_type: "text/html",
            header: retry_after.map(|seconds| ("retry-after", seconds.to_string())),
            body: text("body")?,
        },
        "content_type" => Action::ContentType(value["html"].as_bool().unwrap_or(false).then_some("text/html")),
        "warnings" => Action::Warnings(size("count")?),
        "connection_close" => Action::ConnectionClose,
        "null_items" => Action::List(ListFlaw::NullItems),
        "no_version" => Action::List(ListFlaw::NoVersion),
        "duplicate_item" => Action::List(ListFlaw::DuplicateItem),
        "missing_items" => Action::List(ListFlaw::MissingItems(size("count")?)),
        "table" => Action::List(ListFlaw::Table),
        "metadata_only" => Action::List(ListFlaw::MetadataOnly),
        "other_kind" => Action::List(ListFlaw::OtherKind),
        "same_continue" => Action::List(ListFlaw::SameContinue),
        "empty_page" => Action::List(ListFlaw::EmptyPage),
        "remaining_count" => {
            Action::List(ListFlaw::RemainingCount(value["count"].as_i64().ok_or(FaultError::Missing("count"))?))
        }
        "reset_after_bytes" => Action::ResetAfterBytes(number("bytes")?),
        "end_after_bytes" => Action::EndAfterBytes(number("bytes")?),
        "stall_after_bytes" => Action::StallAfterBytes(number("bytes")?),
        "corrupt_byte" => Action::CorruptByte(number("at")?),
        "drip" => Action::Drip { bytes: size("bytes")?, pause: pause("milliseconds")? },
        "unasked_gzip" => Action::UnaskedGzip,
        "error_event" => Action::ErrorEvent { code: code()?, after_events: number("events")? },
        "end_after_events" => Action::EndAfterEvents(number("events")?),
        "reset_after_events" => Action::ResetAfterEvents(number("events")?),
        "withhold_end_bookmark" => Action::WithholdEndBookmark,
        "drop_event" => Action::DropEvent(number("event")?),
        "duplicate_event" => Action::DuplicateEvent(number("event")?),
        "swap_events" => Action::SwapEvents(number("event")?),
        "delay_event" => Action::DelayEvent { nth: number("event")?, delay: pause("milliseconds")? },
        "retype_event" => Action::RetypeEvent { nth: number("event")?, to: parse_type(&text("to")?)? },
        "insert_line" => Action::InsertLine { after_events: number("events")?, line: text("line")? },
        "bookmark_version" => Action::BookmarkVersion(text("version")?),
        other => return Err(FaultError::Unknown(other.to_owned())),
    })
}

fn parse_type(name: &str) -> Result<&'static str, FaultError> {
    let known = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "UNKNOWN"];
    known.into_iter().find(|known| *known == name).ok_or_else(|| FaultError::Unknown(name.to_owned()))
}

fn parse_verb(name: &str) -> Result<Verb, FaultError> {
    let known = [
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Create,
        Verb::Update,
        Verb::Patch,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Other,
    ];
    known.into_iter().find(|verb| verb.as_str() == name).ok_or_else(|| FaultError::Unknown(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_action_can_be_described_in_json() {
        for kind in [
            "reset_before_answer",
            "no_answer",
            "delay",
            "compact",
            "status",
            "version_too_large",
            "page",
            "content_type",
            "warnings",
            "connection_close",
            "null_items",
            "no_version",
            "duplicate_item",
            "missing_items",
            "table",
            "metadata_only",
            "other_kind",
            "same_continue",
            "empty_page",
            "remaining_count",
            "reset_after_bytes",
            "end_after_bytes",
            "stall_after_bytes",
            "corrupt_byte",
            "drip",
            "unasked_gzip",
            "error_event",
            "end_after_events",
            "reset_after_events",
            "withhold_end_bookmark",
            "drop_event",
            "duplicate_event",
            "swap_events",
            "delay_event",
            "retype_event",
            "insert_line",
            "bookmark_version",
        ] {
            let values = json!({"code": 500, "milliseconds": 5, "count": 1, "bytes": 1, "at": 1, "events": 1, "event": 1,
                "to": "DELETED", "line": "x", "version": "1", "body": "x"});
            assert_eq!(parse_action(kind, &values).map(|action| action.kind()), Ok(kind));
        }
    }

    #[test]
    fn invalid_descriptions_are_refused_with_a_reason() {
        let why = |value: Value| parse_fault(&value).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(why(json!({})), Err("\"action\" is missing, or of another type".into()));
        assert_eq!(why(json!({"action": "status"})), Err("\"code\" is missing, or of another type".into()));
        assert_eq!(why(json!({"action": "explode"})), Err("nothing is known as \"explode\"".into()));
        assert_eq!(why(json!({"action": "compact", "verb": "sing"})), Err("nothing is known as \"sing\"".into()));
        assert_eq!(why(json!({"action": "compact", "verbs": "get"})), Err("no fault has a member \"verbs\"".into()));
        let nth = json!({"action": "compact", "nth": "2"});
        assert_eq!(why(nth), Err("\"nth\" is missing, or of another type".into()));
    }
}
