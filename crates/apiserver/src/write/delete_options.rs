//! The options of a delete: from the body in three formats, or from the query.

use serde_json::Value;

use super::Trust;
use super::options::dry_run_cause;
use super::protobuf::{Field, envelope, fields};
use crate::query::Query;
use crate::status::{Status, StatusCause};

/// Options of a delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) dry_run: bool,
    /// The deprecated way to ask for dependents to stay; `Some(false)` changes the code of the answer.
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) trust: Trust,
}

impl DeleteOptions {
    /// Reads options from a body that was decoded to JSON.
    pub(crate) fn from_value(body: &Value) -> Result<Self, Status> {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let dry_run = body["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let preconditions = &body["preconditions"];
        Raw {
            grace_period: body["gracePeriodSeconds"].as_i64(),
            uid: text(&preconditions["uid"]),
            resource_version: text(&preconditions["resourceVersion"]),
            dry_run: dry_run.map(str::to_owned).collect(),
            orphan_dependents: body["orphanDependents"].as_bool(),
            propagation_policy: text(&body["propagationPolicy"]),
        }
        .check()
    }

    /// Reads options from the query, which counts when there is no body.
    pub(crate) fn from_query(query: &Query) -> Result<Self, Status> {
        let text = |name: &str| query.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
        Raw {
            grace_period: query.number("gracePeriodSeconds")?,
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            dry_run: text("dryRun").into_iter().collect(),
            orphan_dependents: query.switch("orphanDependents"),
            propagation_policy: text("propagationPolicy"),
        }
        .check()
    }

    /// Reads options from a protobuf body, as Go clients send it.
    pub(crate) fn from_protobuf(body: &[u8]) -> Result<Self, Status> {
        let refuse = || Status::bad_request("couldn't decode DeleteOptions from protobuf");
        let mut raw = Raw::default();
        for field in fields(envelope(body).ok_or_else(refuse)?) {
            match field.ok_or_else(refuse)? {
                Field::Number(1, seconds) => raw.grace_period = Some(seconds.cast_signed()),
                Field::Number(3, orphan) => raw.orphan_dependents = Some(orphan != 0),
                Field::Bytes(2, preconditions) => {
                    for field in fields(preconditions) {
                        match field.ok_or_else(refuse)? {
                            Field::Bytes(1, uid) => raw.uid = text(uid),
                            Field::Bytes(2, version) => raw.resource_version = text(version),
                            _ => {}
                        }
                    }
                }
                Field::Bytes(4, policy) => raw.propagation_policy = text(policy),
                Field::Bytes(5, dry_run) => raw.dry_run.extend(text(dry_run)),
                _ => {}
            }
        }
        raw.check()
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Options as they were sent.
#[derive(Debug, Default)]
struct Raw {
    grace_period: Option<i64>,
    uid: Option<String>,
    resource_version: Option<String>,
    dry_run: Vec<String>,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<String>,
}

impl Raw {
    fn check(self) -> Result<DeleteOptions, Status> {
        const POLICY: &str = "propagationPolicy";
        let mut causes: Vec<StatusCause> = self.dry_run.iter().filter_map(|value| dry_run_cause(value)).collect();
        if let Some(policy) = &self.propagation_policy {
            if self.orphan_dependents.is_some() {
                let both = "orphanDependents and deletionPropagation cannot be both set";
                causes.push(StatusCause::invalid(POLICY, format!("{policy:?}: {both}")));
            }
            if !matches!(policy.as_str(), "Orphan" | "Background" | "Foreground") {
                let known = "supported values: \"Background\", \"Foreground\", \"Orphan\"";
                causes.push(StatusCause::unsupported(POLICY, format!("{policy:?}: {known}")));
            }
        }
        if !causes.is_empty() {
            return Err(Status::invalid_options("DeleteOptions", causes));
        }
        Ok(DeleteOptions {
            grace_period: self.grace_period,
            uid: self.uid,
            resource_version: self.resource_version,
            dry_run: self.dry_run.iter().any(|value| value == "All"),
            orphan_dependents: self.orphan_dependents,
            trust: Trust::Client,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn body_query_and_protobuf_say_the_same() {
        let expected = DeleteOptions {
            grace_period: Some(5),
            uid: Some("u".into()),
            resource_version: Some("7".into()),
            dry_run: true,
            ..DeleteOptions::default()
        };
        let body = json!({"gracePeriodSeconds": 5, "dryRun": ["All"], "propagationPolicy": "Background",
            "preconditions": {"uid": "u", "resourceVersion": "7"}});
        assert_eq!(DeleteOptions::from_value(&body), Ok(expected.clone()));
        let query =
            Query::parse("gracePeriodSeconds=5&dryRun=All&propagationPolicy=Background&uid=u&resourceVersion=7");
        assert_eq!(DeleteOptions::from_query(&query), Ok(expected.clone()));
        let mut message = vec![0x08, 5, 0x12, 6, 0x0a, 1, b'u', 0x12, 1, b'7', 0x22, 10];
        message.extend_from_slice(b"Background");
        message.extend_from_slice(&[0x2a, 3]);
        message.extend_from_slice(b"All");
        let mut body = b"k8s\0".to_vec();
        body.extend_from_slice(&[0x0a, 0, 0x12, u8::try_from(message.len()).unwrap()]);
        body.extend_from_slice(&message);
        body.extend_from_slice(&[0x1a, 0, 0x22, 0]);
        assert_eq!(DeleteOptions::from_protobuf(&body), Ok(expected));
        assert_eq!(DeleteOptions::from_protobuf(&body[..20]).unwrap_err().code, 400);
        assert_eq!(DeleteOptions::from_protobuf(b"{}").unwrap_err().code, 400);
    }

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        for body in [
            json!({"orphanDependents": true, "propagationPolicy": "Orphan"}),
            json!({"propagationPolicy": "Sideways"}),
            json!({"dryRun": ["Maybe"]}),
        ] {
            assert_eq!(DeleteOptions::from_value(&body).unwrap_err().code, 422, "{body}");
        }
    }
}
