//! The screen: the same for informers of this process and of another program.
//!
//! [`Reading`] is the state of one informer at one time; [`Board`] remembers readings and computes rates; [`Picture`]
//! draws a whole screen from plain values; [`Screen`] is the terminal, and restores it at the end.

mod board;
mod charts;
mod groups;
mod help;
mod keys;
mod palette;
mod picture;
mod pipeline;
mod reading;
mod screen;
mod table;
mod tail;
mod text;
#[cfg(test)]
mod tests;

pub(crate) use board::Board;
pub(crate) use groups::Group;
pub(crate) use keys::Key;
pub(crate) use palette::Palette;
pub(crate) use picture::Picture;
pub(crate) use reading::{Handler, Progress, Reading, State, Work};
pub(crate) use screen::{Screen, give_back, is_possible};
pub(crate) use table::lines as table_lines;
pub(crate) use tail::{Mark, Tail};
pub(crate) use text::{align, bytes, count, lists, rate, short, span};
