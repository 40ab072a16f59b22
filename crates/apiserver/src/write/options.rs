//! Options common to all writes.

use crate::query::Query;
use crate::status::{Status, StatusCause};

/// How much of an object its writer may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Trust {
    /// A client: status has a path of its own, and namespaces must exist.
    #[default]
    Client,
    /// The process the server lives in: it plays user, kubelet and controllers at once, and makes the namespaces it needs.
    Host,
}

/// Options of a create, update or patch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) trust: Trust,
}

impl WriteOptions {
    /// A write by the process itself.
    pub(crate) const HOST: Self = Self { dry_run: false, trust: Trust::Host };

    /// Reads the parameters of a request; `kind` names the options in error messages.
    pub(crate) fn parse(query: &Query, kind: &str) -> Result<Self, Status> {
        let mut causes = Vec::new();
        let dry_run = query.get("dryRun");
        causes.extend(dry_run.and_then(dry_run_cause));
        if query.text("fieldManager").len() > 128 {
            causes.push(StatusCause::new(
                "FieldValueTooLong",
                "fieldManager",
                "Too long: may not be more than 128 bytes",
            ));
        }
        if kind == "PatchOptions" && query.get("force").is_some() {
            causes.push(StatusCause::forbidden("force", "may not be specified for non-apply patch"));
        }
        let validation = query.text("fieldValidation");
        if !matches!(validation, "" | "Ignore" | "Warn" | "Strict") {
            let text = format!("{validation:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
            causes.push(StatusCause::unsupported("fieldValidation", text));
        }
        if causes.is_empty() {
            return Ok(Self { dry_run: dry_run.is_some_and(|value| value == "All"), trust: Trust::Client });
        }
        Err(Status::invalid_options(kind, causes))
    }
}

/// What is wrong with a `dryRun` value.
pub(super) fn dry_run_cause(value: &str) -> Option<StatusCause> {
    let refused = !value.is_empty() && value != "All";
    refused.then(|| StatusCause::unsupported("dryRun", format!("[{value:?}]: supported values: \"All\"")))
}
