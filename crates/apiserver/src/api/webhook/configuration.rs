//! Webhooks as their configurations describe them, and the writes that they match.

use kube_structural_schema::CelCondition;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

use super::Asked;
use super::client::ClientConfig;
use crate::api::selector::LabelSelector;
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::status::Status;
use crate::storage::key::StoreKey;

pub(super) const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
pub(super) const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// The group whose own objects are never sent to webhooks, so that a broken webhook can be repaired.
const EXEMPT_GROUP: &str = "admissionregistration.k8s.io";

/// The versions of `AdmissionReview` that the server sends.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// One webhook of a configuration.
#[derive(Debug)]
pub(super) struct Webhook {
    pub(super) name: String,
    pub(super) client: ClientConfig,
    pub(super) timeout: Duration,
    /// Whether a failing webhook lets the write pass.
    pub(super) fails_open: bool,
    /// Whether it is called again if a later webhook changes the object.
    pub(super) is_reinvoked: bool,
    has_side_effects: bool,
    is_equivalent: bool,
    rules: Vec<Value>,
    namespaces: LabelSelector,
    objects: LabelSelector,
    conditions: Vec<(String, String)>,
    review_version: &'static str,
}

/// How a write is sent to a webhook.
#[derive(Debug)]
pub(super) struct WebhookCall {
    /// The resource in the version that the rule names.
    pub(super) resource: Arc<Resource>,
    pub(super) review_version: &'static str,
}

/// Returns the webhooks of all configurations of a kind, in the order in which they are called.
pub(super) fn webhooks(hub: &Hub, id: &str) -> Vec<Webhook> {
    let mut state = hub.storage.lock();
    let Some(resource) = state.catalog.named(id).cloned() else { return Vec::new() };
    let configurations = state.collection(&resource).objects().clone();
    drop(state);
    let mut webhooks = Vec::new();
    for configuration in configurations.values() {
        let value = configuration.value();
        webhooks.extend(value["webhooks"].as_array().into_iter().flatten().map(Webhook::read));
    }
    webhooks
}

impl Webhook {
    fn read(webhook: &Value) -> Self {
        let text = |member: &str| webhook[member].as_str().unwrap_or_default();
        let list = |member: &str| webhook[member].as_array().cloned().unwrap_or_default();
        let selector = |member: &str| LabelSelector::of(&webhook[member]).unwrap_or_default();
        let condition = |condition: &Value| {
            let text = |member: &str| condition[member].as_str().unwrap_or_default().to_owned();
            (text("name"), text("expression"))
        };
        let asked = list("admissionReviewVersions");
        let review_version = REVIEW_VERSIONS.into_iter().find(|known| asked.iter().any(|version| version == known));
        Self {
            name: text("name").to_owned(),
            client: ClientConfig::read(&webhook["clientConfig"]),
            timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(10)),
            fails_open: text("failurePolicy") == "Ignore",
            is_reinvoked: text("reinvocationPolicy") == "IfNeeded",
            has_side_effects: !matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            is_equivalent: text("matchPolicy") != "Exact",
            rules: list("rules"),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            conditions: list("matchConditions").iter().map(condition).collect(),
            review_version: review_version.unwrap_or(REVIEW_VERSIONS[0]),
        }
    }

    /// Returns how to send a write to this webhook, or `None` if the write does not match it.
    pub(super) fn matches(&self, asked: &Asked<'_>, object: Option<&Value>) -> Result<Option<WebhookCall>, Status> {
        let Some(resource) = self.ruled(asked) else { return Ok(None) };
        let selected = self.selects_namespace(asked, object) && self.selects_object(asked, object);
        if !selected || !self.conditions_hold(asked, object)? {
            return Ok(None);
        }
        if asked.dry_run && self.has_side_effects {
            let message = format!("admission webhook {:?} does not support dry run", self.name);
            return Err(Status::bad_request(message));
        }
        Ok(Some(WebhookCall { resource, review_version: self.review_version }))
    }

    /// Returns the resource in the version of a rule that matches the write.
    fn ruled(&self, asked: &Asked<'_>) -> Option<Arc<Resource>> {
        if asked.resource.group == EXEMPT_GROUP {
            return None;
        }
        let covers = |resource: &Resource| self.rules.iter().any(|rule| rule_matches(rule, asked, resource));
        if covers(asked.resource) {
            return Some(Arc::new(asked.resource.clone()));
        }
        if !self.is_equivalent {
            return None;
        }
        let state = asked.hub.storage.lock();
        let mut versions = state.catalog.served().filter(|other| other.storage == asked.resource.storage);
        versions.find(|other| covers(other)).cloned()
    }

    /// Returns whether the labels of the namespace match. Other cluster-scoped objects always match.
    fn selects_namespace(&self, asked: &Asked<'_>, object: Option<&Value>) -> bool {
        if self.namespaces.is_empty() {
            return true;
        }
        if asked.resource.id == "namespaces" {
            return self.namespaces.matches_labels(&labelled(object.or(asked.before)));
        }
        let Some(namespace) = asked.key.namespace() else { return true };
        let state = asked.hub.storage.lock();
        let found = state.catalog.named("namespaces").and_then(|namespaces| {
            state.object(namespaces, &StoreKey::new(None, namespace)).map(|object| self.namespaces.matches(&object))
        });
        found.unwrap_or(false)
    }

    /// Returns whether the labels of the new or the old object match.
    fn selects_object(&self, asked: &Asked<'_>, object: Option<&Value>) -> bool {
        let one = |object: Option<&Value>| object.is_some() && self.objects.matches_labels(&labelled(object));
        self.objects.is_empty() || one(object) || one(asked.before)
    }

    fn conditions_hold(&self, asked: &Asked<'_>, object: Option<&Value>) -> Result<bool, Status> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let request = super::review::request(asked, asked.resource, object);
        let (new, old) = (object.unwrap_or(&Value::Null), asked.before.unwrap_or(&Value::Null));
        let values = [("object", new), ("oldObject", old), ("request", &request)];
        let mut failed = None;
        for (_, expression) in &self.conditions {
            let condition = CelCondition::compile(expression, &values.map(|(name, _)| name));
            match condition.and_then(|condition| condition.test(&values)) {
                // One condition that does not hold decides, whatever the others say.
                Ok(false) => return Ok(false),
                Ok(true) => {}
                Err(why) => failed = failed.or(Some(format!("expression '{expression}' resulted in error: {why}"))),
            }
        }
        match failed {
            None => Ok(true),
            Some(_) if self.fails_open => Ok(false),
            Some(why) => {
                let (id, name) = (asked.resource.qualified(), asked.key.name());
                let status = Status::failure(403, "Forbidden", format!("{id} {name:?} is forbidden: {why}"));
                Err(status.with_details(asked.resource.details(name)))
            }
        }
    }

    /// Returns the error of a webhook that could not be called or gave no valid response.
    pub(super) fn failed(&self, why: &str) -> Status {
        Status::internal(format!("failed calling webhook {:?}: {why}", self.name))
    }
}

/// Returns the labels of an object.
fn labelled(object: Option<&Value>) -> Value {
    object.map_or_else(|| json!({}), |object| object["metadata"]["labels"].clone())
}

/// Returns whether a rule names this operation, group, version, resource and scope.
fn rule_matches(rule: &Value, asked: &Asked<'_>, resource: &Resource) -> bool {
    let names = |member: &str, wanted: &str| {
        rule[member].as_array().into_iter().flatten().any(|one| one == "*" || one == wanted)
    };
    let resources = || rule["resources"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let named = resources().any(|entry| {
        let (plural, subresource) = entry.split_once('/').unwrap_or((entry, ""));
        let fits = |rule: &str, wanted: &str| rule == "*" || rule == wanted;
        fits(plural, &resource.plural) && fits(subresource, asked.subresource.unwrap_or_default())
    });
    let scope = match rule["scope"].as_str() {
        Some("Namespaced") => resource.namespaced,
        Some("Cluster") => !resource.namespaced,
        _ => true,
    };
    names("operations", asked.operation)
        && names("apiGroups", &resource.group)
        && names("apiVersions", &resource.version)
        && named
        && scope
}
