#![doc = include_str!("../README.md")]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("tollgate needs a target with 64-bit atomics: a lock in one process is worth nothing to another");

mod cached_clock;
mod clock;
mod counter;
mod error;
mod fast_clock;
mod file;
mod generations;
mod layout;
mod limiter;
mod mapping;
mod options;
mod refusal;
mod several;
mod system;
mod wait;

pub use cached_clock::{CachedClock, Refreshed};
pub use clock::MachineClock;
pub use error::FileError;
pub use fast_clock::FastClock;
pub use limiter::SharedRateLimiter;
pub use options::Options;
pub use refusal::AcquireError;
pub use several::{NotAll, acquire_all_timeout, try_acquire_all};
pub use tollgate_core::{Clock, ExceedsPermit, Permit, Quota, QuotaError, RetryAfter, TryAcquireError, quota};
pub use wait::{Refusal, retry_for};
