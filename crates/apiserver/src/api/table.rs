//! What a client sees when it asks for a table: columns and cells of the built-in kinds.
//!
//! kubectl shows what the server prints, so the text of each cell is the API server's own, to the letter.
//! Objects come in the form the API serves; what a default would have filled in is read as that default.

mod access;
mod age;
mod autoscaling;
mod cluster;
mod column;
mod columns;
mod control;
mod controlled;
mod event;
mod label;
mod network;
mod pod;
mod printer;
mod quantity;
mod read;
mod routes;
mod row;
mod storage;
mod build;
mod printed;

pub(crate) use build::{Form, Include};
pub use printed::{TableColumn, TablePrinter};
pub(crate) use printer::Printer;

use build::ListMeta;
use columns::columns;
use row::{Row, rows, rows_of_list};

#[cfg(test)]
mod tests;
