//! Sets of field paths as `fieldsV1` holds them: a JSON tree whose keys are the steps, with `.` for the place itself.

use serde_json::{Map, Value};

use super::path::{BadPathElement, PathElement};
use super::set::{Branch, FieldSet, Node};

/// The set as `fieldsV1`.
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

/// Reads `fieldsV1`. Null is the empty set; steps of an unknown kind are left out.
///
/// # Errors
///
/// It is not a tree of steps.
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
        nodes.push(Node { element, branch: decode_branch(below)? });
    }
    Ok(Branch { member: nodes.is_empty() || members.contains_key("."), below: FieldSet::from_nodes(nodes) })
}
