//! Faults, and the conditions that choose their requests.

use std::time::Duration;

use super::{Action, Facts, ListFlaw};
use crate::chance::Chance;
use crate::message::reply::TEXT;
use crate::message::verb::Verb;

/// A fault: an action, and the conditions that choose its requests. Without conditions it applies to all requests.
///
/// ```
/// use kube_embedded_apiserver::{Action, Fault, Verb};
///
/// // The third watch of pods that begins with initial events is cut after two of them.
/// let fault = Fault::new(Action::ResetAfterEvents(2));
/// let fault = fault.verb(Verb::Watch).resource("pods").query_contains("sendInitialEvents=true").nth(3);
/// # let _ = fault;
/// ```
#[derive(Debug, Clone)]
#[must_use = "a fault does nothing until it is added to a plan"]
pub struct Fault {
    action: Action,
    verb: Option<Verb>,
    resource: Option<String>,
    namespace: Option<String>,
    user_agent: Option<String>,
    query: Option<String>,
    nth: Option<u64>,
    since: u64,
    times: Option<u64>,
    probability: Option<f64>,
}

impl Fault {
    /// Returns a fault with this action, for every request.
    pub fn new(action: Action) -> Self {
        Self {
            action,
            verb: None,
            resource: None,
            namespace: None,
            user_agent: None,
            query: None,
            nth: None,
            since: 1,
            times: None,
            probability: None,
        }
    }

    /// Answers with this code and a `Status` body.
    pub fn status(code: u16) -> Self {
        Self::new(Action::Status { code, retry_after: None })
    }

    /// Answers with this code, a `Status` body and a `Retry-After` header.
    pub fn status_retry_after(code: u16, seconds: u32) -> Self {
        Self::new(Action::Status { code, retry_after: Some(seconds) })
    }

    /// Breaks the connection before any answer.
    pub fn reset() -> Self {
        Self::new(Action::ResetBeforeAnswer)
    }

    /// Breaks the connection after this number of body bytes, even in the middle of an event.
    pub fn reset_after_bytes(bytes: u64) -> Self {
        Self::new(Action::ResetAfterBytes(bytes))
    }

    /// Ends a watch after this number of events with an `ERROR` event of this code.
    pub fn error_event(code: u16, after_events: u64) -> Self {
        Self::new(Action::ErrorEvent { code, after_events })
    }

    /// Ends a watch cleanly after this number of events.
    pub fn end_after_events(events: u64) -> Self {
        Self::new(Action::EndAfterEvents(events))
    }

    /// Withholds the bookmark that ends the initial events.
    pub fn withhold_end_bookmark() -> Self {
        Self::new(Action::WithholdEndBookmark)
    }

    /// Delays the answer by this time.
    pub fn delay(delay: Duration) -> Self {
        Self::new(Action::Delay(delay))
    }

    /// Answers with an HTML page, as a proxy or a login page would.
    pub fn html_page(code: u16) -> Self {
        let body = "<html><body><h1>Bad Gateway</h1></body></html>\n".to_owned();
        Self::new(Action::Page { code, content_type: "text/html", header: None, body })
    }

    /// Answers 429 in plain text, as flow control does.
    pub fn too_many_requests(retry_after_seconds: Option<u32>) -> Self {
        let body = "Too many requests, please try again later.\n".to_owned();
        let header = retry_after_seconds.map(|seconds| ("retry-after", seconds.to_string()));
        Self::new(Action::Page { code: 429, content_type: TEXT, header, body })
    }

    /// Answers with a redirect to another location.
    pub fn redirect(location: impl Into<String>) -> Self {
        let header = Some(("location", location.into()));
        Self::new(Action::Page { code: 302, content_type: "text/html", header, body: String::new() })
    }

    /// Answers a list with a flaw.
    pub fn list(flaw: ListFlaw) -> Self {
        Self::new(Action::List(flaw))
    }

    /// Applies only to requests with this verb.
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Applies only to requests for this resource, such as `pods` or `deployments.apps`.
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Applies only to requests for this namespace.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Applies only to clients whose user agent starts with `prefix`.
    pub fn user_agent(mut self, prefix: impl Into<String>) -> Self {
        self.user_agent = Some(prefix.into());
        self
    }

    /// Applies only to requests whose query contains this string, such as `continue=` or `sendInitialEvents=true`.
    pub fn query_contains(mut self, text: impl Into<String>) -> Self {
        self.query = Some(text.into());
        self
    }

    /// Applies only to the `nth` request that meets the other conditions, counted from 1 since the fault was added.
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = Some(nth);
        self
    }

    /// Applies from the `nth` request on that meets the other conditions, counted from 1 since the fault was added.
    /// [`times`](Self::times) counts from that request.
    pub fn since(mut self, nth: u64) -> Self {
        self.since = nth;
        self
    }

    /// Applies at most this number of times.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Applies with this probability, drawn from the seed of the server.
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = Some(probability);
        self
    }
}

/// A fault that was added, with its counters.
#[derive(Debug)]
pub(super) struct Rule {
    fault: Fault,
    met: u64,
    applied: u64,
}

impl Rule {
    pub(super) fn new(fault: Fault) -> Self {
        Self { fault, met: 0, applied: 0 }
    }

    /// Returns the action, if the fault applies to this request.
    pub(super) fn apply(&mut self, facts: &Facts, chance: &Chance) -> Option<Action> {
        let fault = &self.fault;
        let equal = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        let meant = fault.verb.is_none_or(|verb| verb == facts.verb)
            && equal(&fault.resource, &facts.resource)
            && equal(&fault.namespace, facts.namespace.as_deref().unwrap_or_default())
            && fault.user_agent.as_deref().is_none_or(|prefix| facts.user_agent.starts_with(prefix))
            && fault.query.as_deref().is_none_or(|text| facts.query.contains(text))
            && fault.action.is_for(facts.verb);
        if !meant {
            return None;
        }
        self.met += 1;
        let due = self.met >= fault.since && fault.nth.is_none_or(|nth| nth == self.met);
        if !due || fault.times.is_some_and(|times| self.applied >= times) {
            return None;
        }
        if fault.probability.is_some_and(|probability| !chance.happens(probability)) {
            return None;
        }
        self.applied += 1;
        Some(fault.action.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(verb: Verb, resource: &str) -> Facts {
        Facts {
            request: 1,
            verb,
            resource: resource.into(),
            namespace: None,
            user_agent: "test/1".into(),
            query: "limit=5".into(),
        }
    }

    fn applied(fault: Fault, requests: &[Facts]) -> Vec<bool> {
        let chance = Chance::new(3);
        let mut rule = Rule::new(fault);
        requests.iter().map(|facts| rule.apply(facts, &chance).is_some()).collect()
    }

    #[test]
    fn conditions_choose_requests() {
        let (list, watch) = (facts(Verb::List, "pods"), facts(Verb::Watch, "pods"));
        let requests = [list.clone(), watch.clone(), list.clone(), facts(Verb::List, "nodes"), list];
        let on_pods = Fault::status(500).verb(Verb::List).resource("pods");
        assert_eq!(applied(on_pods.clone(), &requests), [true, false, true, false, true]);
        assert_eq!(applied(on_pods.clone().nth(2), &requests), [false, false, true, false, false]);
        assert_eq!(applied(on_pods.clone().times(1), &requests), [true, false, false, false, false]);
        assert_eq!(applied(on_pods.clone().since(2), &requests), [false, false, true, false, true]);
        assert_eq!(applied(on_pods.clone().since(2).times(1), &requests), [false, false, true, false, false]);
        assert_eq!(applied(on_pods.since(0), &requests), [true, false, true, false, true]);
        assert_eq!(applied(Fault::status(500).query_contains("limit="), &requests), [true; 5]);
        assert_eq!(applied(Fault::status(500).user_agent("other"), &requests), [false; 5]);
        assert_eq!(applied(Fault::withhold_end_bookmark(), &requests), [false, true, false, false, false]);
    }

    #[test]
    fn same_seed_gives_same_draws() {
        let requests = vec![facts(Verb::List, "pods"); 64];
        let once = applied(Fault::status(500).probability(0.5), &requests);
        assert_eq!(once, applied(Fault::status(500).probability(0.5), &requests));
        assert!(once.contains(&true) && once.contains(&false));
    }
}
