//! Options common to all writes.

use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::time::Instant;

use crate::api::webhook::Caller;
use crate::hub::Trust;
use crate::message::deadline;
use crate::message::query::Query;
use crate::status::{Status, StatusCause};

/// How unknown and duplicate fields are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Validation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// Options of a create, update or patch.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    /// Calls webhooks; `None` if the cluster has none, and for direct writes.
    pub(crate) caller: Option<Caller>,
    pub(crate) dry_run: bool,
    pub(crate) trust: Trust,
    pub(crate) validation: Validation,
    /// The field manager of the write.
    pub(crate) manager: Arc<str>,
    /// The options that the client sent, for webhooks.
    pub(crate) sent: Map<String, Value>,
    /// Whether an apply takes over fields of other managers.
    pub(crate) force: bool,
    /// The deadline for retries after writes of other clients. Direct writes have none.
    pub(crate) until: Option<Instant>,
}

/// The maximum length of a manager name.
const MANAGER_LIMIT: usize = 128;

impl WriteOptions {
    /// Returns the options of a write by the process itself.
    pub(crate) fn host() -> Self {
        Self {
            caller: None,
            dry_run: false,
            trust: Trust::Host,
            validation: Validation::Ignore,
            manager: "host".into(),
            sent: Map::new(),
            force: true,
            until: None,
        }
    }

    /// Reads the parameters of a request; `kind` names the options in error messages.
    pub(crate) fn parse(query: &Query, kind: &'static str, user_agent: &str) -> Result<Self, Status> {
        let applies = kind == "ApplyOptions";
        let kind = if applies { "PatchOptions" } else { kind };
        let mut causes = Vec::new();
        let dry_run = query.get("dryRun");
        causes.extend(dry_run.and_then(dry_run_cause));
        causes.extend(manager_cause(query.text("fieldManager"), applies));
        if kind == "PatchOptions" && !applies && query.get("force").is_some() {
            causes.push(StatusCause::forbidden("force", "may not be specified for non-apply patch"));
        }
        let validation = match query.text("fieldValidation") {
            "Ignore" => Validation::Ignore,
            "" | "Warn" => Validation::Warn,
            "Strict" => Validation::Strict,
            other => {
                let text = format!("{other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
                causes.push(StatusCause::unsupported("fieldValidation", text));
                Validation::default()
            }
        };
        if !causes.is_empty() {
            return Err(Status::invalid_options(kind, causes));
        }
        let named = query.get("fieldManager").filter(|name| !name.is_empty());
        let mut sent = Map::new();
        for name in ["fieldManager", "fieldValidation"] {
            if let Some(value) = query.get(name).filter(|value| !value.is_empty()) {
                sent.insert(name.to_owned(), value.into());
            }
        }
        Ok(Self {
            sent,
            caller: None,
            dry_run: dry_run.is_some_and(|value| value == "All"),
            trust: Trust::Client,
            validation,
            manager: named.map_or_else(|| manager_of(user_agent), Into::into),
            force: query.switch("force") == Some(true),
            until: Some(Instant::now() + deadline::allowed(query.text("timeout"))?),
        })
    }

    /// Returns the options as an object of this kind, for webhooks. Those of a patch are shown as options of the create or
    /// update that it makes.
    pub(super) fn to_value(&self, kind: &str) -> Value {
        let mut options = Value::Object(self.sent.clone());
        options["kind"] = kind.into();
        options["apiVersion"] = "meta.k8s.io/v1".into();
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    /// Checks that there is time for another try. A write never awaits, so only this check ends it.
    pub(super) fn check_time(&self) -> Result<(), Status> {
        let over = self.until.is_some_and(|until| Instant::now() >= until);
        if over { Err(deadline::passed()) } else { Ok(()) }
    }
}

/// Returns the default field manager of a client: its user agent up to the slash.
fn manager_of(user_agent: &str) -> Arc<str> {
    let name = user_agent.split('/').next().unwrap_or_default();
    let mut end = name.len().min(MANAGER_LIMIT);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let printable: String = name[..end].chars().filter(|sign| !sign.is_control()).collect();
    if printable.is_empty() { "unknown".into() } else { printable.into() }
}

fn manager_cause(name: &str, applies: bool) -> Option<StatusCause> {
    if name.is_empty() {
        return applies.then(|| StatusCause::required("fieldManager", "is required for apply patch"));
    }
    if name.len() > MANAGER_LIMIT {
        let message = format!("Too long: may not be more than {MANAGER_LIMIT} bytes");
        return Some(StatusCause::new("FieldValueTooLong", "fieldManager", message));
    }
    let printable = name.chars().all(|sign| !sign.is_control());
    (!printable)
        .then(|| StatusCause::invalid("fieldManager", format!("{name:?}: should only contain printable characters")))
}

/// Returns the error of a `dryRun` value.
pub(super) fn dry_run_cause(value: &str) -> Option<StatusCause> {
    let refused = !value.is_empty() && value != "All";
    refused.then(|| StatusCause::unsupported("dryRun", format!("[{value:?}]: supported values: \"All\"")))
}
