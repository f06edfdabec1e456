#![doc = include_str!("../README.md")]
#![no_std]

mod bucket;
mod clock;
mod error;
mod quota;
mod state;
mod tick;
mod word;

pub use bucket::{MAX_ATTEMPTS, TokenBucket};
#[cfg(target_has_atomic = "64")]
pub use clock::ManualClock;
pub use clock::{Clock, MAX_MICROS, NoClock};
pub use error::TryAcquireError;
pub use quota::{Quota, QuotaError};
pub use state::{RetryAfter, State};
pub use tick::Moment;
pub use word::{DefaultWord, Word, Words};
