//! One column of a table.

use serde_json::{Value, json};

/// How a column is called and what its cells hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    /// The heading, as written by the server; kubectl puts it in capitals.
    pub(crate) name: &'static str,
    /// What the cells are: `string`, `integer`, `boolean` or `date`.
    pub(crate) kind: &'static str,
    /// `name` for the column that names the object.
    pub(crate) format: &'static str,
    /// 0 for a column that is always shown, 1 for one that only `-o wide` shows.
    pub(crate) priority: i32,
    /// What the column says, in a few words.
    pub(crate) description: &'static str,
}

impl Column {
    /// The column that names the object.
    pub(super) const NAME: Self = Self { format: "name", description: "Name of the object", ..Self::text("Name") };
    /// How long the object has been there.
    pub(super) const AGE: Self = Self { description: "Time since the object was created", ..Self::text("Age") };
    /// When the object was created.
    pub(super) const CREATED_AT: Self =
        Self { kind: "date", description: "Time at which the object was created", ..Self::text("Created At") };

    /// A column of text.
    pub(super) const fn text(name: &'static str) -> Self {
        Self { name, kind: "string", format: "", priority: 0, description: "" }
    }

    /// A column of numbers.
    pub(super) const fn integer(name: &'static str) -> Self {
        Self { kind: "integer", ..Self::text(name) }
    }

    /// A column of yes and no.
    pub(super) const fn boolean(name: &'static str) -> Self {
        Self { kind: "boolean", ..Self::text(name) }
    }

    /// A column of text that only `-o wide` shows.
    pub(super) const fn wide(name: &'static str) -> Self {
        Self::text(name).widened()
    }

    /// The same column, shown with `-o wide` only.
    pub(super) const fn widened(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// The same column, said to hold names.
    pub(super) const fn of_names(self) -> Self {
        Self { format: "name", ..self }
    }

    /// The column as `columnDefinitions` lists it.
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
