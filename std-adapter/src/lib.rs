#![doc = include_str!("../README.md")]

#[cfg(not(target_os = "linux"))]
compile_error!("tollgate needs Linux: its clock, its file protocol and its checks are that kernel's");
#[cfg(not(target_has_atomic = "64"))]
compile_error!("tollgate needs a target with 64-bit atomics: a lock in one process is worth nothing to another");

mod clock;
mod error;
mod file;
mod layout;
mod limiter;
mod mapping;
mod wait;

pub use clock::MachineClock;
pub use error::FileError;
pub use limiter::SharedRateLimiter;
pub use tollgate_core::{Clock, Quota, QuotaError, RetryAfter, TryAcquireError, quota};
pub use wait::retry_for;
