//! What a bucket keeps its state in, and what the bucket asks of it.

use crate::state::MOVED;
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
    /// Refills the state to the time of the clock, and publishes what `decide` makes of that, if anything. Returns
    /// the state that `decide` was given at last.
    fn transact(
        &self,
        quota: &Quota,
        clock: impl Fn() -> u64,
        decide: impl Fn(State, Moment) -> Option<State>,
    ) -> Result<(State, Moment), Miss>;

    /// Gives `n` tokens back.
    fn refund(&self, quota: &Quota, n: u32) -> Result<(), Miss>;
}

/// Why an attempt came to nothing.
pub(crate) enum Miss {
    /// Another call has changed the words.
    Overtaken,
    /// The horizon is too far back for a state at this time, or a jump is half done.
    Unsettled,
    /// The state word is one of those that are no states.
    NoState(u64),
}

impl From<Miss> for TryAcquireError {
    #[inline]
    fn from(miss: Miss) -> Self {
        match miss {
            Miss::Overtaken | Miss::Unsettled => Self::Contended,
            Miss::NoState(MOVED) => Self::Moved,
            Miss::NoState(_) => Self::Uninitialized,
        }
    }
}
