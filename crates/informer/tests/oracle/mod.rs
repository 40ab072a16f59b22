//! What must be true of an informer, whatever its objects are and whoever drives it.
//!
//! Simulation and stress share it: [`Truth`] is what a server has, a [`Witness`] is what one handler was told, and the
//! forms are all the ways in which a handler can be written.

mod forms;
mod truth;
mod witness;

pub(crate) use forms::{Form, Listening};
pub(crate) use truth::{Truth, handle_difference, index_difference};
pub(crate) use witness::{SharedWitness, Witness};
