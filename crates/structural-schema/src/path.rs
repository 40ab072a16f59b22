//! The path of a field. It is only formatted for an error.

use std::fmt;

/// A place in an object or in a CRD: a linked list of steps, from the last to the first.
#[derive(Clone, Copy)]
pub(crate) enum ValuePath<'a> {
    /// The whole object, shown as `<nil>` in messages.
    Whole,
    /// A path given as a string.
    Text(&'a str),
    /// A named field.
    Child(&'a ValuePath<'a>, &'a str),
    /// A member of a map.
    Key(&'a ValuePath<'a>, &'a str),
    /// An element of a list.
    Index(&'a ValuePath<'a>, usize),
}

impl<'a> ValuePath<'a> {
    pub(crate) fn child(&'a self, name: &'a str) -> ValuePath<'a> {
        ValuePath::Child(self, name)
    }

    pub(crate) fn key(&'a self, name: &'a str) -> ValuePath<'a> {
        ValuePath::Key(self, name)
    }

    pub(crate) fn index(&'a self, index: usize) -> ValuePath<'a> {
        ValuePath::Index(self, index)
    }

    fn write(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePath::Whole => Ok(()),
            ValuePath::Text(text) => out.write_str(text),
            ValuePath::Child(ValuePath::Whole, name) => out.write_str(name),
            ValuePath::Child(parent, name) => {
                parent.write(out)?;
                write!(out, ".{name}")
            }
            ValuePath::Key(parent, name) => {
                parent.write(out)?;
                write!(out, "[{name}]")
            }
            ValuePath::Index(parent, index) => {
                parent.write(out)?;
                write!(out, "[{index}]")
            }
        }
    }
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePath::Whole => out.write_str("<nil>"),
            _ => self.write(out),
        }
    }
}
