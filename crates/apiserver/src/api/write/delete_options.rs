//! The options of a delete: from the body in three formats, or from the query.

use serde_json::{Value, json};

use super::Trust;
use super::options::dry_run_cause;
use crate::api::webhook::Caller;
use crate::kinds::{form, types};
use crate::message::query::Query;
use crate::status::{Status, StatusCause};

/// Options of a delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) dry_run: bool,
    /// The deprecated option to orphan dependents. `Some(false)` changes the code of the answer.
    pub(crate) orphan_dependents: Option<bool>,
    /// The propagation policy.
    pub(crate) propagation: Option<Propagation>,
    pub(crate) trust: Trust,
    /// Whether the delete is one of a collection.
    pub(crate) collection: bool,
    /// Calls webhooks; `None` if the cluster has none, and for direct deletes.
    pub(crate) caller: Option<Caller>,
}

/// What happens to the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay.
    Orphan,
}

impl DeleteOptions {
    /// Reads options from a body that was decoded to JSON.
    pub(crate) fn from_value(body: Value) -> Result<Self, Status> {
        let body = match types::named("meta/v1.DeleteOptions") {
            Some(of) => form::form(of, body).map_err(refused)?.object,
            None => body,
        };
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let dry_run = body["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let preconditions = &body["preconditions"];
        RawDeleteOptions {
            grace_period: body["gracePeriodSeconds"].as_i64(),
            uid: text(&preconditions["uid"]),
            resource_version: text(&preconditions["resourceVersion"]),
            dry_run: dry_run.map(str::to_owned).collect(),
            orphan_dependents: body["orphanDependents"].as_bool(),
            propagation_policy: text(&body["propagationPolicy"]),
        }
        .check()
    }

    /// Returns the options as an object, for webhooks.
    pub(super) fn to_value(&self) -> Value {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if let Some(seconds) = self.grace_period {
            options["gracePeriodSeconds"] = seconds.into();
        }
        if let Some(policy) = self.propagation {
            options["propagationPolicy"] = policy.name().into();
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    /// Reads options from the query, which is used if there is no body.
    pub(crate) fn from_query(query: &Query) -> Result<Self, Status> {
        let text = |name: &str| query.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
        RawDeleteOptions {
            grace_period: query.number("gracePeriodSeconds")?,
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            dry_run: text("dryRun").into_iter().collect(),
            orphan_dependents: query.switch("orphanDependents"),
            propagation_policy: text("propagationPolicy"),
        }
        .check()
    }
}

impl Propagation {
    fn name(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

fn propagation(policy: &str) -> Option<Propagation> {
    match policy {
        "Background" => Some(Propagation::Background),
        "Foreground" => Some(Propagation::Foreground),
        "Orphan" => Some(Propagation::Orphan),
        _ => None,
    }
}

fn refused(why: String) -> Status {
    Status::bad_request(format!("DeleteOptions in version \"v1\" cannot be handled as a DeleteOptions: {why}"))
}

/// The options as received.
#[derive(Debug, Default)]
struct RawDeleteOptions {
    grace_period: Option<i64>,
    uid: Option<String>,
    resource_version: Option<String>,
    dry_run: Vec<String>,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<String>,
}

impl RawDeleteOptions {
    fn check(self) -> Result<DeleteOptions, Status> {
        const POLICY: &str = "propagationPolicy";
        let mut causes: Vec<StatusCause> = self.dry_run.iter().filter_map(|value| dry_run_cause(value)).collect();
        if let Some(policy) = &self.propagation_policy {
            if self.orphan_dependents.is_some() {
                let both = "orphanDependents and deletionPropagation cannot be both set";
                causes.push(StatusCause::invalid(POLICY, format!("{policy:?}: {both}")));
            }
            if propagation(policy).is_none() {
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
            propagation: self.propagation_policy.as_deref().and_then(propagation),
            collection: false,
            trust: Trust::Client,
            caller: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_and_query_give_the_same_options() {
        let expected = DeleteOptions {
            grace_period: Some(5),
            uid: Some("u".into()),
            resource_version: Some("7".into()),
            dry_run: true,
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        let body = json!({"gracePeriodSeconds": 5, "dryRun": ["All"], "propagationPolicy": "Background",
            "preconditions": {"uid": "u", "resourceVersion": "7"}});
        assert_eq!(DeleteOptions::from_value(body), Ok(expected.clone()));
        let query =
            Query::parse("gracePeriodSeconds=5&dryRun=All&propagationPolicy=Background&uid=u&resourceVersion=7");
        assert_eq!(DeleteOptions::from_query(&query), Ok(expected));
    }

    #[test]
    fn options_of_a_wrong_type_are_refused() {
        for body in
            [json!({"gracePeriodSeconds": "5"}), json!({"dryRun": "All"}), json!({"preconditions": []}), json!([])]
        {
            assert_eq!(DeleteOptions::from_value(body.clone()).unwrap_err().code, 400, "{body}");
        }
    }

    #[test]
    fn conflicting_options_are_refused() {
        for body in [
            json!({"orphanDependents": true, "propagationPolicy": "Orphan"}),
            json!({"propagationPolicy": "Sideways"}),
            json!({"dryRun": ["Maybe"]}),
        ] {
            assert_eq!(DeleteOptions::from_value(body.clone()).unwrap_err().code, 422, "{body}");
        }
    }
}
