//! The `fieldsV1` form of sets: a JSON tree whose keys are path elements, with `.` for the place itself.

use serde_json::{Map, Value};

use super::path::{BadPathElement, PathElement};
use super::set::{Branch, FieldSet, SetNode};

/// Returns the set as `fieldsV1`.
pub(crate) fn encode(set: &FieldSet) -> Value {
    let nodes = set.nodes().iter();
    Value::Object(nodes.map(|node| (node.element.encode(), encode_branch(&node.branch))).collect())
}

fn encode_branch(branch: &Branch) -> Value {
    let mut members = match encode(&branch.below) {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    if branch.member && !members.is_empty() {
        members.insert(".".into(), Value::Object(Map::new()));
    }
    Value::Object(members)
}

/// Parses `fieldsV1`. Null is the empty set. Elements of an unknown kind are omitted.
///
/// # Errors
///
/// The value is not a tree of path elements.
pub(crate) fn decode(fields: &Value) -> Result<FieldSet, BadPathElement> {
    decode_branch(fields).map(|branch| branch.below)
}

fn decode_branch(fields: &Value) -> Result<Branch, BadPathElement> {
    let members = match fields {
        Value::Null => return Ok(Branch::leaf()),
        Value::Object(members) => members,
        other => return Err(BadPathElement(other.to_string())),
    };
    let mut nodes = Vec::with_capacity(members.len());
    for (name, below) in members.iter().filter(|(name, _)| *name != ".") {
        let Some(element) = PathElement::parse(name)? else { continue };
        nodes.push(SetNode { element, branch: decode_branch(below)? });
    }
    Ok(Branch { member: nodes.is_empty() || members.contains_key("."), below: FieldSet::from_nodes(nodes) })
}
