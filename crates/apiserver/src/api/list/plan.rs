//! Decides which state a list shows: one pure function of the options.

use super::{ContinueToken, ListQuery};
use crate::hub::journal::AnsweredFrom;
use crate::status::Status;

/// The state that a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// The latest state.
    Latest,
    /// Any state: the cached one.
    Any,
    /// The current state, once it has reached this revision.
    NotOlderThan(u64),
    /// The state right after this revision.
    Exactly(u64),
}

/// The plan for answering a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListPlan {
    pub(crate) at: At,
    /// `None` also if the server ignores the limit in the options.
    pub(crate) limit: Option<usize>,
    /// The first key of a continued list, relative to the scope of the list.
    pub(crate) start: Option<String>,
    pub(crate) from: AnsweredFrom,
}

/// Decides how a list is answered. `cached` says whether the resource has a watch cache.
pub(crate) fn plan(options: &ListQuery, cached: bool) -> Result<ListPlan, Status> {
    options.validate()?;
    let limit = Some(options.limit).filter(|limit| *limit > 0);
    if !options.continue_token.is_empty() {
        return continued(options, limit, cached);
    }
    let version = parse_version(&options.resource_version)
        .map_err(|invalid| Status::bad_request(format!("invalid resource version: {invalid}")))?;
    let (at, limit) = match (options.version_match.as_str(), version) {
        ("Exact", Some(revision)) => (At::Exactly(revision), limit),
        ("NotOlderThan", Some(revision)) => (At::NotOlderThan(revision), limit),
        // Without a match, a version with a limit means exactly that version.
        (_, Some(revision)) if limit.is_some() => (At::Exactly(revision), limit),
        (_, Some(revision)) => (At::NotOlderThan(revision), None),
        (_, None) if options.resource_version == "0" => (At::Any, limit.filter(|_| !cached)),
        (_, None) => (At::Latest, limit),
    };
    Ok(ListPlan { at, limit, start: None, from: answered_from(at, cached) })
}

fn continued(options: &ListQuery, limit: Option<usize>, cached: bool) -> Result<ListPlan, Status> {
    if !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    let token = ContinueToken::decode(&options.continue_token)?;
    // A token without a revision continues with the latest state.
    let at = u64::try_from(token.revision).map_or(At::Latest, At::Exactly);
    Ok(ListPlan { at, limit, start: Some(token.start), from: answered_from(at, cached) })
}

fn answered_from(at: At, cached: bool) -> AnsweredFrom {
    match at {
        _ if !cached => AnsweredFrom::Storage,
        At::Exactly(_) => AnsweredFrom::CacheSnapshot,
        At::Latest | At::Any | At::NotOlderThan(_) => AnsweredFrom::Cache,
    }
}

/// Parses a version: `None` for `""` and `"0"`, and kube-apiserver's message if it is not a number.
pub(crate) fn parse_version(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let invalid = |why| format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {why}");
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid("invalid syntax"));
    }
    let revision: u64 = text.parse().map_err(|_| invalid("value out of range"))?;
    Ok(Some(revision).filter(|revision| *revision > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use AnsweredFrom::{Cache, CacheSnapshot, Storage};

    fn options(version_match: &str, version: &str, limit: usize) -> ListQuery {
        ListQuery {
            version_match: version_match.into(),
            resource_version: version.into(),
            limit,
            ..ListQuery::default()
        }
    }

    fn check(version_match: &str, version: &str, limit: usize, expected: (At, Option<usize>, AnsweredFrom)) {
        let plan = plan(&options(version_match, version, limit), true).unwrap();
        assert_eq!((plan.at, plan.limit, plan.from), expected, "{version_match} {version} {limit}");
    }

    #[test]
    fn version_match_and_limit_select_the_state() {
        check("", "", 0, (At::Latest, None, Cache));
        check("", "", 5, (At::Latest, Some(5), Cache));
        check("", "0", 0, (At::Any, None, Cache));
        check("", "0", 5, (At::Any, None, Cache));
        check("", "7", 0, (At::NotOlderThan(7), None, Cache));
        check("", "7", 5, (At::Exactly(7), Some(5), CacheSnapshot));
        check("NotOlderThan", "0", 5, (At::Any, None, Cache));
        check("NotOlderThan", "7", 0, (At::NotOlderThan(7), None, Cache));
        check("NotOlderThan", "7", 5, (At::NotOlderThan(7), Some(5), Cache));
        check("Exact", "7", 0, (At::Exactly(7), None, CacheSnapshot));
        check("Exact", "7", 5, (At::Exactly(7), Some(5), CacheSnapshot));
    }

    #[test]
    fn resource_without_cache_honours_every_limit() {
        let plan = plan(&options("", "0", 5), false).unwrap();
        assert_eq!((plan.at, plan.limit, plan.from), (At::Any, Some(5), Storage));
    }

    #[test]
    fn token_selects_its_revision() {
        let token = |revision| ContinueToken { revision, start: "a/b\0".into() }.encode();
        let with = |revision, version: &str, version_match: &str| {
            let continue_token = token(revision);
            plan(&ListQuery { continue_token, ..options(version_match, version, 2) }, true)
        };
        let found = with(9, "0", "").unwrap();
        assert_eq!((found.at, found.start.as_deref()), (At::Exactly(9), Some("a/b\0")));
        assert_eq!(with(-1, "", "").unwrap().at, At::Latest);
        assert_eq!(with(9, "5", "").unwrap_err().code, 400);
        assert_eq!(with(9, "", "Exact").unwrap_err().code, 422);
    }

    #[test]
    fn invalid_combinations_are_refused() {
        for (version_match, version) in [("Exact", ""), ("NotOlderThan", ""), ("Exact", "0"), ("Foo", "7")] {
            let refused = plan(&options(version_match, version, 0), true).unwrap_err();
            assert_eq!(refused.code, 422, "{version_match} {version}");
        }
        let refused = plan(&options("", "abc", 0), true).unwrap_err();
        assert_eq!(
            refused.message,
            "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax"
        );
    }
}
