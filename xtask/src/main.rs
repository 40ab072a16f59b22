//! Habits.
fn main() {}
