//! The objects that the server has, and checks of them.

use std::collections::BTreeMap;

use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "web";

/// Makes an owner with this number of replicas.
pub(crate) fn owner(name: &str, replicas: u32) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": replicas}})
}

/// Returns the uid of the owner of an object, if it has one.
fn owner_of(object: &Value) -> Option<&str> {
    object["metadata"]["ownerReferences"][0]["uid"].as_str()
}

/// Returns the children by the uid of their owner. Config maps without an owner have the empty string as key.
pub(crate) fn children(server: &ApiServer) -> BTreeMap<String, Vec<Value>> {
    let mut children: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for child in server.list("configmaps").unwrap().1 {
        children.entry(owner_of(&child).unwrap_or_default().to_owned()).or_default().push(child);
    }
    children
}

/// Returns true if the owner of a child exists.
pub(crate) fn owner_exists(server: &ApiServer, child: &str) -> bool {
    let Ok(child) = server.get("configmaps", Some(NAMESPACE), child) else { return false };
    let owners = server.list("deployments.apps").unwrap().1;
    owner_of(&child).is_some_and(|uid| owners.iter().any(|owner| owner["metadata"]["uid"] == uid))
}

/// Makes an object undecodable, or decodable again.
pub(crate) fn set_undecodable(server: &ApiServer, resource: &str, name: &str, undecodable: bool) {
    let Ok(mut object) = server.get(resource, Some(NAMESPACE), name) else { return };
    object["metadata"]["labels"] = if undecodable { json!(5) } else { json!({}) };
    server.put_as_is(resource, Some(NAMESPACE), object).unwrap();
}

/// Makes all objects decodable again.
pub(crate) fn repair_all(server: &ApiServer) {
    for resource in ["deployments.apps", "configmaps"] {
        for object in server.list(resource).unwrap().1 {
            if object["metadata"]["labels"] == json!(5) {
                set_undecodable(server, resource, object["metadata"]["name"].as_str().unwrap(), false);
            }
        }
    }
}

/// Checks that no owner has two children.
pub(crate) fn check_single(server: &ApiServer, what: &str) {
    for (uid, children) in children(server).into_iter().filter(|(uid, _)| !uid.is_empty()) {
        assert!(children.len() <= 1, "{what}: {uid} has {} children: {children:#?}", children.len());
    }
}

/// Returns the first owner without exactly its child, and what it has instead; `None` if all owners have their child.
pub(crate) fn missing(server: &ApiServer) -> Option<String> {
    let children = children(server);
    server.list("deployments.apps").unwrap().1.into_iter().find_map(|owner| {
        let (uid, replicas) = (owner["metadata"]["uid"].as_str().unwrap(), owner["spec"]["replicas"].to_string());
        let name = &owner["metadata"]["name"];
        match children.get(uid).map(Vec::as_slice) {
            Some([child]) if child["data"]["replicas"] == json!(replicas) => None,
            Some([child]) => Some(format!("{name} wants {replicas} and has {}", child["data"]["replicas"])),
            other => Some(format!("{name} has {} children", other.map_or(0, <[_]>::len))),
        }
    })
}
