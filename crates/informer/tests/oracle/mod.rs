//! The invariants of an informer, for every type of object and every test driver.
//!
//! Simulation and stress share this module. [`Truth`] is the state of the server, a [`Witness`] checks the events of
//! one handler, and `forms` has all forms of handlers.

mod forms;
mod truth;
mod witness;

pub(crate) use forms::{Form, Listening};
pub(crate) use truth::{Truth, handle_difference, index_difference};
pub(crate) use witness::{SharedWitness, Witness};
