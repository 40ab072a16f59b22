//! Discovery: lists the resources that the server offers, in one document for each group or in one for all.

use http::{HeaderValue, Response, header};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::api::action;
use crate::kinds::{Catalog, Resource, group_version};
use crate::message::reply::{Body, full_body, json_reply, reply, value_reply};

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const PART_VERBS: [&str; 3] = ["get", "patch", "update"];
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A group and its versions, the preferred one first.
struct DiscoveryGroup<'a> {
    name: &'a str,
    versions: Vec<&'a str>,
}

/// Answers a discovery path, or returns `None` for any other path.
pub(crate) fn discover(catalog: &Catalog, steps: &[&str], aggregated: bool, known: &str) -> Option<Response<Body>> {
    match steps {
        ["api"] if aggregated => Some(aggregate(catalog, |group| group.is_empty(), known)),
        ["apis"] if aggregated => Some(aggregate(catalog, |group| !group.is_empty(), known)),
        ["api"] => Some(value_reply(
            200,
            &json!({"kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]}),
        )),
        ["apis"] => {
            let groups: Vec<Value> =
                groups(catalog).iter().filter(|group| !group.name.is_empty()).map(DiscoveryGroup::legacy).collect();
            Some(value_reply(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})))
        }
        ["api", version] => resource_list(catalog, "", version),
        ["apis", name] => {
            let groups = groups(catalog);
            let group = groups.iter().find(|group| group.name == *name && !group.name.is_empty())?;
            let mut shown = group.legacy();
            shown["kind"] = "APIGroup".into();
            shown["apiVersion"] = "v1".into();
            Some(value_reply(200, &shown))
        }
        ["apis", group, version] => resource_list(catalog, group, version),
        _ => None,
    }
}

/// Returns all groups in the order of their first resource.
fn groups(catalog: &Catalog) -> Vec<DiscoveryGroup<'_>> {
    let mut groups: Vec<DiscoveryGroup<'_>> = Vec::new();
    for resource in catalog.served() {
        match groups.iter_mut().find(|group| group.name == resource.group) {
            Some(group) if group.versions.contains(&resource.version.as_str()) => {}
            Some(group) => group.versions.push(&resource.version),
            None => groups.push(DiscoveryGroup { name: &resource.group, versions: vec![&resource.version] }),
        }
    }
    for group in &mut groups {
        group.versions.sort_by_key(|version| rank(version));
    }
    groups
}

/// Returns the rank of a version: stable before beta, beta before alpha, higher before lower. Other names come last, in
/// alphabetical order.
fn rank(version: &str) -> (u8, Reverse<u64>, Reverse<u64>, &str) {
    let last = (3, Reverse(0), Reverse(0), version);
    let Some(digits) = version.strip_prefix('v') else { return last };
    let end = digits.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(digits.len());
    let (major, stage) = digits.split_at(end);
    let Ok(major) = major.parse() else { return last };
    let (level, minor) = match stage.strip_prefix("beta").map(|minor| (1, minor)) {
        _ if stage.is_empty() => return (0, Reverse(major), Reverse(0), ""),
        Some(beta) => beta,
        None => match stage.strip_prefix("alpha") {
            Some(minor) => (2, minor),
            None => return last,
        },
    };
    minor.parse().map_or(last, |minor| (level, Reverse(major), Reverse(minor), ""))
}

impl DiscoveryGroup<'_> {
    fn legacy(&self) -> Value {
        let versions: Vec<Value> = self
            .versions
            .iter()
            .map(|version| json!({"groupVersion": group_version(self.name, version), "version": version}))
            .collect();
        json!({"name": self.name, "versions": versions, "preferredVersion": versions.first()})
    }
}

fn resource_list(catalog: &Catalog, group: &str, version: &str) -> Option<Response<Body>> {
    if !catalog.serves(group, version) {
        return None;
    }
    let mut resources = Vec::new();
    for resource in of_version(catalog, group, version) {
        let mut shown = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": verbs(resource),
        });
        if !resource.short_names.is_empty() {
            shown["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            shown["categories"] = json!(resource.categories);
        }
        resources.push(shown);
        for part in parts(resource) {
            let mut shown = json!({
                "name": format!("{}/{}", resource.plural, part.name), "singularName": "",
                "namespaced": resource.namespaced, "kind": part.kind, "verbs": part.verbs,
            });
            if let Some((group, version)) = part.foreign {
                shown["group"] = group.into();
                shown["version"] = version.into();
            }
            resources.push(shown);
        }
    }
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version(group, version),
        "resources": resources});
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(value_reply(200, &list))
}

fn of_version<'a>(catalog: &'a Catalog, group: &'a str, version: &'a str) -> impl Iterator<Item = &'a Resource> {
    let served = catalog.served().map(|resource| &**resource);
    served.filter(move |resource| resource.group == group && resource.version == version)
}

/// Returns the verbs of a resource.
fn verbs(resource: &Resource) -> Vec<&'static str> {
    if resource.rules.review {
        return vec!["create"];
    }
    VERBS.into_iter().filter(|verb| resource.id != "namespaces" || *verb != "deletecollection").collect()
}

/// A subresource in a discovery document.
struct SubresourceEntry<'a> {
    name: &'static str,
    kind: &'a str,
    /// The group and version of its kind, if they differ from those of the resource.
    foreign: Option<(&'static str, &'static str)>,
    verbs: &'static [&'static str],
}

fn parts(resource: &Resource) -> Vec<SubresourceEntry<'_>> {
    let acted_on = action::PARTS.iter().filter(|(id, ..)| *id == resource.id);
    let mut parts: Vec<SubresourceEntry<'_>> = acted_on
        .map(|(_, name, [group, version, kind])| SubresourceEntry {
            name,
            kind,
            foreign: (*group != resource.group).then_some((*group, *version)),
            verbs: &["create"],
        })
        .collect();
    if resource.id == "namespaces" {
        parts.push(SubresourceEntry { name: "finalize", kind: &resource.kind, foreign: None, verbs: &["update"] });
    }
    for (id, name) in [("pods", "ephemeralcontainers"), ("certificatesigningrequests.certificates.k8s.io", "approval")]
    {
        if resource.id == id {
            parts.push(SubresourceEntry { name, kind: &resource.kind, foreign: None, verbs: &PART_VERBS });
        }
    }
    if resource.rules.scale.is_some() {
        let foreign = Some(("autoscaling", "v1"));
        parts.push(SubresourceEntry { name: "scale", kind: "Scale", foreign, verbs: &PART_VERBS });
    }
    if resource.rules.status {
        parts.push(SubresourceEntry { name: "status", kind: &resource.kind, foreign: None, verbs: &PART_VERBS });
    }
    parts
}

/// Returns one document for all groups that `chosen` picks.
fn aggregate(catalog: &Catalog, chosen: impl Fn(&str) -> bool, known: &str) -> Response<Body> {
    let items: Vec<Value> = groups(catalog)
        .iter()
        .filter(|group| chosen(group.name))
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> =
                        of_version(catalog, group.name, version).map(aggregated_resource).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": {"name": group.name}, "versions": versions})
        })
        .collect();
    let document = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items});
    let mut response = value_reply(200, &document);
    let mut hasher = DefaultHasher::new();
    document.to_string().hash(&mut hasher);
    let tag = format!("\"{:016X}\"", hasher.finish());
    if known == tag {
        response = reply(304, AGGREGATED, full_body(""));
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(AGGREGATED));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let subresources: Vec<Value> = parts(resource)
        .iter()
        .map(|part| {
            let (group, version) = part.foreign.unwrap_or((&resource.group, &resource.version));
            json!({"subresource": part.name, "responseKind": kind(group, version, part.kind), "verbs": part.verbs})
        })
        .collect();
    let mut shown = json!({
        "resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": verbs(resource),
    });
    for (member, values) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !values.is_empty() {
            shown[member] = json!(values);
        }
    }
    if !subresources.is_empty() {
        shown["subresources"] = subresources.into();
    }
    shown
}

/// Answers `GET /version`.
pub(crate) fn version(minor: u32) -> Response<Body> {
    let version = json!({
        "major": "1", "minor": minor.to_string(), "gitVersion": format!("v1.{minor}.0+embedded"), "gitCommit": "unknown",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    });
    json_reply(200, serde_json::to_string_pretty(&version).unwrap_or_default())
}
