//! Conflicts: fields that an apply would change although another manager owns them.

use std::fmt;

use super::manager::{ManagerEntry, ManagerIdentity};
use super::set::FieldSet;

/// The conflicting fields, by manager.
#[derive(Debug, Clone, Default)]
pub struct Conflicts {
    managers: Vec<(ManagerIdentity, ManagerEntry)>,
}

/// One conflicting field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictCause {
    /// The other manager, such as `conflict with "kubectl" using apps/v1`.
    pub message: String,
    /// The path of the field, such as `.spec.replicas`.
    pub field: String,
}

impl Conflicts {
    /// Adds the fields of a manager. An empty set is not a conflict.
    pub(super) fn add(&mut self, identity: &ManagerIdentity, owner: &ManagerEntry, fields: FieldSet) {
        if !fields.is_empty() {
            self.managers.push((identity.clone(), ManagerEntry { fields, ..owner_without_fields(owner) }));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.managers.is_empty()
    }

    /// Returns the conflicts without these fields.
    pub(super) fn without(&self, fields: &FieldSet) -> Self {
        let mut left = Self::default();
        for (identity, entry) in &self.managers {
            left.add(identity, entry, entry.fields.clone().difference(fields));
        }
        left
    }

    /// Returns one cause for each field, for the details of the answer.
    pub fn causes(&self) -> Vec<ConflictCause> {
        let of_manager = |(_, entry): &(ManagerIdentity, ManagerEntry)| {
            let message = format!("conflict with {}", entry.description());
            let cause = move |field| ConflictCause { message: message.clone(), field };
            entry.fields.texts().into_iter().map(cause).collect::<Vec<_>>()
        };
        self.managers.iter().flat_map(of_manager).collect()
    }
}

fn owner_without_fields(owner: &ManagerEntry) -> ManagerEntry {
    ManagerEntry {
        manager: owner.manager.clone(),
        operation: owner.operation,
        api_version: owner.api_version.clone(),
        subresource: owner.subresource.clone(),
        time: owner.time.clone(),
        fields: FieldSet::default(),
    }
}

/// Writes the message of the answer.
impl fmt::Display for Conflicts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = self.causes();
        if let [cause] = causes.as_slice() {
            return write!(out, "Apply failed with 1 conflict: {}: {}", cause.message, cause.field);
        }
        let mut lines = Vec::new();
        for (_, entry) in &self.managers {
            lines.push(format!("conflicts with {}:", entry.description()));
            lines.extend(entry.fields.texts().into_iter().map(|field| format!("- {field}")));
        }
        write!(out, "Apply failed with {} conflicts: {}", causes.len(), lines.join("\n"))
    }
}
