//! What a bucket keeps its state in, and what the bucket asks of it.

use crate::{Moment, Quota, State, TryAcquireError};

/// The most attempts that one call makes to change the bucket, before it gives up with
/// [`Contended`](TryAcquireError::Contended). An attempt fails only because another call has succeeded.
pub const MAX_ATTEMPTS: u32 = 256;

/// The shared memory of a [`TokenBucket`](crate::TokenBucket): [`Words`](crate::Words), exact after idle times of any
/// length, or [`OneWord`](crate::OneWord), half as large, exact within a window.
///
/// Implemented by these two alone.
#[allow(private_bounds, reason = "sealed")]
pub trait Memory: Sealed {}

/// The operations of a [`Memory`].
pub(crate) trait Sealed {
    /// Reads the state, refills it to the time of the clock, lets `decide` answer, and publishes the state that comes
    /// with the answer, if any. Reads the clock once.
    fn transact<T>(
        &self,
        quota: &Quota,
        clock: impl Fn() -> u64,
        decide: impl Fn(State, Moment) -> (Option<State>, T),
    ) -> Result<T, TryAcquireError>;

    /// Gives `n` tokens back.
    fn refund(&self, quota: &Quota, n: u32) -> Result<(), TryAcquireError>;
}
