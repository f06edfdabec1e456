#![doc = include_str!("../README.md")]
#![no_std]

mod bucket;
mod clock;
mod counter;
#[cfg(feature = "critical-section")]
mod critical_section_word;
mod error;
mod handshake;
#[cfg(feature = "heapless")]
mod keyed;
mod lease;
#[cfg(target_has_atomic = "64")]
mod manual_clock;
mod memory;
mod one_word;
mod permit;
mod pool;
mod quota;
#[cfg(target_has_atomic = "64")]
mod quota_cell;
mod refiller;
mod ring;
#[cfg(feature = "serde")]
mod serde_quota;
mod state;
mod tick;
mod word;
mod words;

pub use bucket::TokenBucket;
pub use clock::{Clock, MAX_MICROS, NoClock};
pub use counter::{Counter, CounterClock, CounterError};
#[cfg(feature = "critical-section")]
pub use critical_section_word::CriticalSectionWord;
pub use error::TryAcquireError;
pub use handshake::{Attached, Count, Counts, HandshakeHeader, Identity, Seat, Waits, Writers};
#[cfg(feature = "heapless")]
pub use keyed::{KeyedBuckets, KeyedError};
pub use lease::Lease;
#[cfg(target_has_atomic = "64")]
pub use manual_clock::ManualClock;
pub use memory::{MAX_ATTEMPTS, Memory};
pub use one_word::{CompactTokenBucket, OneWord};
pub use permit::{ExceedsPermit, GiveBack, Permit};
pub use pool::AtomicTokenBucket;
pub use quota::{Quota, QuotaError};
#[cfg(target_has_atomic = "64")]
pub use quota_cell::QuotaCell;
pub use refiller::Refiller;
pub use ring::{Observation, ObservationRing, Observed, Watcher};
pub use state::{RetryAfter, State};
pub use tick::Moment;
pub use word::{DefaultWord, Word};
pub use words::Words;
