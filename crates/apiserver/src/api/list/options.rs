//! The options of a list request, as received.

use crate::message::query::Query;
use crate::status::{Status, StatusCause};

/// The options of a list request.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListQuery {
    /// The maximum number of items; zero means all.
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) resource_version: String,
    pub(crate) version_match: String,
    pub(crate) send_initial_events: Option<bool>,
}

impl ListQuery {
    /// Reads the parameters of a request.
    pub(crate) fn parse(query: &Query) -> Result<Self, Status> {
        Ok(Self {
            limit: query.number("limit")?.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0),
            continue_token: query.text("continue").to_owned(),
            resource_version: query.text("resourceVersion").to_owned(),
            version_match: query.text("resourceVersionMatch").to_owned(),
            send_initial_events: query.switch("sendInitialEvents"),
        })
    }

    /// Refuses invalid combinations, with all errors at once.
    pub(crate) fn validate(&self) -> Result<(), Status> {
        const MATCH: &str = "resourceVersionMatch";
        let mut causes = Vec::new();
        if !self.version_match.is_empty() {
            if self.resource_version.is_empty() {
                causes.push(StatusCause::forbidden(
                    MATCH,
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !self.continue_token.is_empty() {
                causes
                    .push(StatusCause::forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
            }
            if !matches!(self.version_match.as_str(), "Exact" | "NotOlderThan") {
                let text = format!("{:?}: supported values: \"Exact\", \"NotOlderThan\", \"\"", self.version_match);
                causes.push(StatusCause::unsupported(MATCH, text));
            }
            if self.version_match == "Exact" && self.resource_version == "0" {
                causes.push(StatusCause::forbidden(
                    MATCH,
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if self.send_initial_events.is_some() {
            causes.push(StatusCause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        if causes.is_empty() { Ok(()) } else { Err(Status::invalid_options("ListOptions", causes)) }
    }
}
