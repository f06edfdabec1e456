//! One suite of black-box cases for every implementation of a bucket: the pure state, the bucket in memory, the
//! bucket in a file; on a server and on a chip.
//!
//! The cases are data: `cases/*.json`, each a quota, a starting level, and steps with the exact answers. Implement
//! [`Subject`], and call [`check`] with the cases. Without the feature `std` there are no files to read: [`check`]
//! takes what was compiled in.

#![cfg_attr(not(feature = "std"), no_std)]

mod case;
mod check;
#[cfg(feature = "std")]
mod files;
mod soak;
mod subjects;

pub use case::{Case, Expect, Rate, Start, Step};
pub use check::{Failure, Outcome, Seen, Subject, check};
#[cfg(feature = "std")]
pub use files::{cases, own_cases};
pub use soak::{Astray, soak};
pub use subjects::{InMemory, Pure};
