//! Routes: which resource and object a path names.

use http::Method;
use std::sync::Arc;

use crate::api::action;
use crate::kinds::{Catalog, Resource};
use crate::message::query::Query;
use crate::message::verb::Verb;
use crate::storage::key::StoreKey;

/// The target of a path.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// A collection, an object or a subresource.
    Resource(RequestTarget),
    /// A path of an unknown resource in a known group and version.
    UnknownResource,
    /// A path outside the resources: discovery, health, version.
    Other,
}

/// The resource, object and subresource that a path names.
#[derive(Debug, Clone)]
pub(crate) struct RequestTarget {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// Whether the path is a deprecated watch path: `/api/v1/watch/…`.
    pub(crate) watch_path: bool,
}

impl Route {
    pub(crate) fn find(path: &str, catalog: &Catalog) -> Self {
        let path = decoded(path);
        let mut steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        let (group, version) = match steps.as_slice() {
            ["api", version, ..] => ("", (*version).to_owned()),
            ["apis", group, version, ..] => (*group, (*version).to_owned()),
            _ => return Self::Other,
        };
        let group = group.to_owned();
        steps.drain(..if group.is_empty() { 2 } else { 3 });
        if steps.is_empty() || !catalog.serves(&group, &version) {
            return Self::Other;
        }
        let watch_path = steps.first() == Some(&"watch");
        if watch_path {
            steps.remove(0);
        }
        match target(&steps, watch_path, |plural| catalog.at(&group, &version, plural).cloned()) {
            Some(target) if target.has_part() => Self::Resource(target),
            _ => Self::UnknownResource,
        }
    }
}

impl RequestTarget {
    /// Returns the key of the object.
    pub(crate) fn key(&self) -> StoreKey {
        StoreKey::new(self.namespace.as_deref(), self.name.as_deref().unwrap_or_default())
    }

    /// Returns whether the resource has the subresource in the path.
    fn has_part(&self) -> bool {
        match self.subresource.as_deref() {
            None => true,
            Some("status") => self.resource.rules.status,
            Some("scale") => self.resource.rules.scale.is_some(),
            Some("finalize") => self.resource.id == "namespaces",
            Some("approval") => self.resource.id == "certificatesigningrequests.certificates.k8s.io",
            Some("ephemeralcontainers") => self.resource.id == "pods",
            Some(part) => self.is_action(part),
        }
    }

    /// Returns whether a subresource is an action, such as an eviction.
    fn is_action(&self, part: &str) -> bool {
        action::PARTS.iter().any(|(resource, name, _)| *resource == self.resource.id && *name == part)
    }

    /// Returns the verb of this method, or `None` if the method is not allowed.
    pub(crate) fn verb(&self, method: &Method, query: &Query) -> Option<Verb> {
        let named = self.name.is_some();
        let scoped = self.namespace.is_some() || !self.resource.namespaced;
        if self.watch_path {
            return (*method == Method::GET).then_some(Verb::Watch);
        }
        if self.subresource.as_deref().is_some_and(|part| self.is_action(part)) || self.resource.rules.review {
            let asked = *method == Method::POST && (named || scoped) && named != self.resource.rules.review;
            return asked.then_some(Verb::Create);
        }
        match *method {
            Method::GET | Method::HEAD if named => Some(Verb::Get),
            Method::GET | Method::HEAD if query.switch("watch") == Some(true) => Some(Verb::Watch),
            Method::GET | Method::HEAD => Some(Verb::List),
            Method::POST if !named && scoped => Some(Verb::Create),
            Method::PUT if named => Some(Verb::Update),
            Method::PATCH if self.subresource.as_deref() == Some("finalize") => None,
            Method::PATCH if named => Some(Verb::Patch),
            Method::DELETE if named && self.subresource.is_none() => Some(Verb::Delete),
            // As in kube-apiserver, namespaces cannot be deleted as a collection.
            Method::DELETE if !named && scoped && self.resource.id != "namespaces" => Some(Verb::DeleteCollection),
            _ => None,
        }
    }
}

/// Decodes the path as kube-apiserver does: an escaped slash counts as a slash.
fn decoded(path: &str) -> String {
    // The same decoding as for queries, except for a few characters.
    let pair = format!("={}", path.replace('+', "%2B").replace('&', "%26"));
    form_urlencoded::parse(pair.as_bytes()).next().map_or_else(String::new, |(_, value)| value.into_owned())
}

fn target(steps: &[&str], watch_path: bool, find: impl Fn(&str) -> Option<Arc<Resource>>) -> Option<RequestTarget> {
    let (namespace, steps) = match steps {
        // A namespace is followed by a resource in it, except for the namespace's own subresources.
        ["namespaces", _, "status" | "finalize"] => (None, steps),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
        _ => (None, steps),
    };
    let (plural, rest) = steps.split_first()?;
    let resource = find(plural)?;
    if namespace.is_some() && !resource.namespaced || rest.len() > 2 {
        return None;
    }
    // The path of a namespaced object must name its namespace.
    if resource.namespaced && namespace.is_none() && !rest.is_empty() {
        return None;
    }
    let name = rest.first().map(|name| (*name).to_owned());
    if watch_path && rest.len() > 1 {
        return None;
    }
    let subresource = rest.get(1).map(|part| (*part).to_owned());
    Some(RequestTarget { resource, namespace, name, subresource, watch_path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        let found = match Route::find(path, &Catalog::built_in()) {
            Route::Resource(target) => format!(
                "{} {} {} {}",
                target.resource.id,
                target.namespace.as_deref().unwrap_or("-"),
                target.name.as_deref().unwrap_or("-"),
                target.subresource.as_deref().unwrap_or("-")
            ),
            Route::UnknownResource => "unknown".into(),
            Route::Other => "other".into(),
        };
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn paths_lead_to_resources() {
        check("/api/v1/pods", "pods - - -");
        check("/api/v1/namespaces/web/pods", "pods web - -");
        check("/api/v1/namespaces/web/pods/a", "pods web a -");
        check("/api/v1/namespaces/web/pods/a/status", "pods web a status");
        check("/api/v1/namespaces", "namespaces - - -");
        check("/api/v1/namespaces/web", "namespaces - web -");
        check("/api/v1/namespaces/web/status", "namespaces - web status");
        check("/apis/apps/v1/deployments", "deployments.apps - - -");
        check(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            "clusterroles.rbac.authorization.k8s.io - system:node -",
        );
        check("/apis/apps/v1/namespaces/web/deployments/a/scale", "deployments.apps web a scale");
        check("/api/v1/namespaces/web%2Fpods/a", "pods web a -");
        check("/api/v1/namespaces/default%2F..%2Fkube-system/secrets", "unknown");
        check("/api/v1/namespaces/default/pods/a%2Fb", "unknown");
        check("/api/v1/namespaces/web/pods/a+b%26c&d", "pods web a+b&c&d -");
        check("/api/v1/namespaces/web/pods/a/scale", "unknown");
        check("/api/v1/namespaces/web/configmaps/a/status", "unknown");
        check("/api/v1/watch/pods", "pods - - -");
        check("/api/v1/watch/namespaces/web/pods/a", "pods web a -");
        check("/apis/apps/v1/watch/deployments", "deployments.apps - - -");
        check("/api/v1/nopes", "unknown");
        check("/api/v1/pods/a", "unknown");
        check("/api/v1/namespaces/web/nodes", "unknown");
        check("/apis/nope.example.com/v1/things", "other");
        check("/version", "other");
        check("/api/v1", "other");
    }
}
