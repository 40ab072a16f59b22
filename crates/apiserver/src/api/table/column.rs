//! One column of a table.

use serde_json::{Value, json};

/// The name and the type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    /// The heading as in kube-apiserver; kubectl shows it in capitals.
    pub(crate) name: &'static str,
    /// The type of the cells: `string`, `integer`, `boolean` or `date`.
    pub(crate) kind: &'static str,
    /// `name` for the column that names the object.
    pub(crate) format: &'static str,
    /// 0 for a column that is always shown, 1 for one that is only shown with `-o wide`.
    pub(crate) priority: i32,
    /// A short description.
    pub(crate) description: &'static str,
}

impl Column {
    /// The column that names the object.
    pub(super) const NAME: Self = Self { format: "name", description: "Name of the object", ..Self::text("Name") };
    /// The age of the object.
    pub(super) const AGE: Self = Self { description: "Time since the object was created", ..Self::text("Age") };
    /// The creation time of the object.
    pub(super) const CREATED_AT: Self =
        Self { kind: "date", description: "Time at which the object was created", ..Self::text("Created At") };

    /// Returns a column of strings.
    pub(super) const fn text(name: &'static str) -> Self {
        Self { name, kind: "string", format: "", priority: 0, description: "" }
    }

    /// Returns a column of numbers.
    pub(super) const fn integer(name: &'static str) -> Self {
        Self { kind: "integer", ..Self::text(name) }
    }

    /// Returns a column of booleans.
    pub(super) const fn boolean(name: &'static str) -> Self {
        Self { kind: "boolean", ..Self::text(name) }
    }

    /// Returns a column of strings that is only shown with `-o wide`.
    pub(super) const fn wide(name: &'static str) -> Self {
        Self::text(name).widened()
    }

    /// Returns the same column, only shown with `-o wide`.
    pub(super) const fn widened(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// Returns the same column with the format `name`.
    pub(super) const fn of_names(self) -> Self {
        Self { format: "name", ..self }
    }

    /// Returns the entry of the column in `columnDefinitions`.
    pub(super) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}
