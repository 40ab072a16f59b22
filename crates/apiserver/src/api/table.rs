//! Tables, for clients that request them: columns and cells of the built-in kinds.
//!
//! kubectl shows the cells as the server prints them, so each cell has exactly the text of kube-apiserver. Objects have
//! the form that the API serves. A missing field is read as its default. Kinds that operators rarely look at have no
//! columns of their own, and show name and creation time.

mod read;
mod age;
mod quantity;
mod label;
mod pod;
mod event;
mod metric;
mod cells;
mod columns;
mod printer;
mod printed;

pub use printed::{TableColumn, TablePrinter};
pub(crate) use printer::{Include, RowPrinter};

#[cfg(test)]
mod tests;
