#![doc = include_str!("../README.md")]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("tollgate needs a target with 64-bit atomics: a lock in one process is worth nothing to another");

mod cached_clock;
mod clock;
mod counter;
mod counting;
mod error;
mod fast_clock;
mod file;
mod generations;
mod layout;
mod limiter;
mod mapping;
mod options;
mod policy;
#[cfg(feature = "metrics")]
mod publish;
mod refusal;
mod several;
mod sidecar;
mod system;
mod tell;
mod wait;

pub use cached_clock::{CachedClock, Refreshed};
pub use clock::MachineClock;
pub use error::FileError;
pub use fast_clock::FastClock;
pub use layout::{Header, Ring};
pub use limiter::{Event, Events, Outcome, Process, SharedRateLimiter};
pub use options::Options;
pub use policy::{Aimd, Fixed, Policy, Stats};
#[cfg(feature = "schedule")]
pub use policy::{Schedule, ScheduleError};
pub use refusal::AcquireError;
pub use several::{NotAll, acquire_all_holding, acquire_all_timeout, try_acquire_all};
pub use sidecar::{AdaptiveInstance, Sidecar, SidecarBox};
pub use tollgate_core::{
    Clock, Count, Counts, ExceedsPermit, Permit, Quota, QuotaError, RetryAfter, TryAcquireError, Waits, quota,
};
