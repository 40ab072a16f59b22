//! The path of a field. It is only formatted for an error.

use std::fmt;

/// A place in an object or in a CRD: a linked list of steps, from the last to the first.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    /// The whole object, shown as `<nil>` in messages.
    Whole,
    /// A path given as a string.
    Text(&'a str),
    /// A named field.
    Child(&'a Path<'a>, &'a str),
    /// A member of a map.
    Key(&'a Path<'a>, &'a str),
    /// An element of a list.
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) fn child(&'a self, name: &'a str) -> Path<'a> {
        Path::Child(self, name)
    }

    pub(crate) fn key(&'a self, name: &'a str) -> Path<'a> {
        Path::Key(self, name)
    }

    pub(crate) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    fn write(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Whole => Ok(()),
            Path::Text(text) => out.write_str(text),
            Path::Child(Path::Whole, name) => out.write_str(name),
            Path::Child(parent, name) => {
                parent.write(out)?;
                write!(out, ".{name}")
            }
            Path::Key(parent, name) => {
                parent.write(out)?;
                write!(out, "[{name}]")
            }
            Path::Index(parent, index) => {
                parent.write(out)?;
                write!(out, "[{index}]")
            }
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Whole => out.write_str("<nil>"),
            _ => self.write(out),
        }
    }
}
