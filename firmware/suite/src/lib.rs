//! What every target without an operating system must pass, whatever its word, its timer and its interrupts.
//!
//! A program makes a [`Report`], calls [`check_answers`], [`Contests::run`] and [`check_turns`], and ends with
//! [`Report::finish`]. It calls [`Contests::interrupt`] in a timer's interrupt, or on another core.

#![no_std]

mod answers;
mod contest;
mod report;
mod turns;

pub use answers::check_answers;
pub use contest::Contests;
pub use report::Report;
pub use turns::{Timed, check_turns, counter};
