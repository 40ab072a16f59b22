//! Tables, for clients that request them: columns and cells of the built-in kinds.
//!
//! kubectl shows the cells as the server prints them, so each cell has exactly the text of kube-apiserver. Objects have
//! the form that the API serves. A missing field is read as its default.

mod access;
mod age;
mod autoscaling;
mod cluster;
mod column;
mod columns;
mod control;
mod controlled;
mod device;
mod event;
mod label;
mod network;
mod pod;
mod policy;
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
