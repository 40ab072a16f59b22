//! The options of a watch request.

use std::time::Duration;

use crate::api::list::{ListQuery, parse_version};
use crate::message::query::Query;
use crate::status::{Status, StatusCause};

/// Where a watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// With every object of the current state, then the events after it.
    Initial {
        /// The current state must be at least this new.
        not_older_than: Option<u64>,
        /// Whether a bookmark ends the initial events, if the client requests bookmarks.
        marked: bool,
    },
    /// With the events after this revision.
    After(u64),
    /// With the events from now on.
    Now,
}

/// The options of a watch request, with defaults filled in.
#[derive(Debug, Clone)]
pub(crate) struct WatchQuery {
    pub(crate) start: Start,
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Option<Duration>,
}

impl WatchQuery {
    /// Reads the parameters of a request. `streaming_lists` says whether initial events may be requested.
    pub(crate) fn parse(query: &Query, streaming_lists: bool) -> Result<Self, Status> {
        let mut options = ListQuery::parse(query)?;
        let timeout = query.number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
        let from_anywhere = matches!(options.resource_version.as_str(), "" | "0");
        let unspecified = options.send_initial_events.is_none() && options.version_match.is_empty();
        if streaming_lists && from_anywhere && unspecified {
            options.send_initial_events = Some(true);
            options.version_match = "NotOlderThan".into();
        }
        validate(&options, streaming_lists)?;
        let version = parse_version(&options.resource_version).map_err(|invalid| Status::failure(500, "", invalid))?;
        let start = match (options.send_initial_events, version) {
            (Some(true), not_older_than) => Start::Initial { not_older_than, marked: true },
            (_, Some(revision)) => Start::After(revision),
            (Some(false), None) => Start::Now,
            (None, None) => Start::Initial { not_older_than: None, marked: false },
        };
        Ok(Self {
            start,
            bookmarks: query.switch("allowWatchBookmarks").unwrap_or(false),
            timeout: timeout.filter(|seconds| *seconds > 0).map(Duration::from_secs),
        })
    }
}

fn validate(options: &ListQuery, streaming_lists: bool) -> Result<(), Status> {
    const MATCH: &str = "resourceVersionMatch";
    let mut causes = Vec::new();
    let asks_for_initial = options.send_initial_events.is_some();
    if asks_for_initial && !streaming_lists {
        causes.push(StatusCause::forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
        ));
    }
    if asks_for_initial && options.version_match != "NotOlderThan" {
        causes.push(StatusCause::forbidden(
            MATCH,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    if !options.version_match.is_empty() {
        if !asks_for_initial {
            causes.push(StatusCause::forbidden(
                MATCH,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        if options.version_match != "NotOlderThan" {
            let text = format!("{:?}: supported values: \"NotOlderThan\"", options.version_match);
            causes.push(StatusCause::unsupported(MATCH, text));
        }
        if !options.continue_token.is_empty() {
            causes.push(StatusCause::forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
    }
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid_options("ListOptions", causes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(query: &str) -> Result<Start, u16> {
        WatchQuery::parse(&Query::parse(query), true).map(|options| options.start).map_err(|status| status.code)
    }

    #[test]
    fn options_select_the_start_of_the_watch() {
        let initial = |not_older_than| Ok(Start::Initial { not_older_than, marked: true });
        assert_eq!(start(""), initial(None));
        assert_eq!(start("resourceVersion=0"), initial(None));
        assert_eq!(start("resourceVersion=7"), Ok(Start::After(7)));
        let streaming = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        assert_eq!(start(streaming), initial(None));
        assert_eq!(start(&format!("{streaming}&resourceVersion=7")), initial(Some(7)));
        let quiet = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
        assert_eq!(start(quiet), Ok(Start::Now));
        assert_eq!(start(&format!("{quiet}&resourceVersion=7")), Ok(Start::After(7)));
    }

    #[test]
    fn invalid_combinations_are_refused() {
        assert_eq!(start("sendInitialEvents=true"), Err(422));
        assert_eq!(start("resourceVersionMatch=NotOlderThan"), Err(422));
        assert_eq!(start("sendInitialEvents=true&resourceVersionMatch=Exact"), Err(422));
        assert_eq!(start("resourceVersion=abc"), Err(500));
        assert_eq!(start("timeoutSeconds=abc"), Err(400));
    }

    #[test]
    fn server_without_streaming_lists_sends_no_end_mark() {
        let parse = |query: &str| WatchQuery::parse(&Query::parse(query), false);
        assert_eq!(parse("").unwrap().start, Start::Initial { not_older_than: None, marked: false });
        let refused = parse("sendInitialEvents=true&resourceVersionMatch=NotOlderThan").unwrap_err();
        assert_eq!(refused.details.unwrap().causes[0].field, "sendInitialEvents");
    }
}
