//! Sets the defaults of an object.

use serde_json::Value;
use std::fmt;

use super::limits;
use super::node::SchemaNode;

/// The defaults would make an object far larger than any that an API server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("defaults make the object too large")
    }
}

impl std::error::Error for TooLarge {}

/// Sets every default of the schema where the object has no value, or a null that the schema does not allow.
///
/// # Errors
///
/// [`TooLarge`] if nested defaults multiply. Some defaults are set then.
pub(crate) fn default(root: &SchemaNode, object: &mut Value) -> Result<(), TooLarge> {
    let mut left = limits::DEFAULTS;
    fill(object, root, &mut left)
}

fn fill(value: &mut Value, node: &SchemaNode, left: &mut usize) -> Result<(), TooLarge> {
    match value {
        Value::Object(members) => {
            for (name, member) in &node.properties {
                let Some(default) = &member.default else {
                    continue;
                };
                let found = members.get(name);
                if found.is_none_or(|found| found.is_null() && !member.nullable) {
                    spend(member, left)?;
                    members.insert(name.clone(), default.clone());
                }
            }
            for (name, member) in members {
                if let Some(inner) = node.properties.get(name) {
                    fill(member, inner, left)?;
                } else if let Some(inner) = node.additional.schema() {
                    replace_null(member, inner, left)?;
                    fill(member, inner, left)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = &node.items else {
                return Ok(());
            };
            for item in items {
                replace_null(item, inner, left)?;
                fill(item, inner, left)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn replace_null(value: &mut Value, node: &SchemaNode, left: &mut usize) -> Result<(), TooLarge> {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        spend(node, left)?;
        *value = default.clone();
    }
    Ok(())
}

fn spend(node: &SchemaNode, left: &mut usize) -> Result<(), TooLarge> {
    *left = left.checked_sub(node.default_size).ok_or(TooLarge)?;
    Ok(())
}
