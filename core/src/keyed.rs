//! One quota for each of a fixed number of keys, without an allocator.

use core::fmt;

use heapless::Vec;

use crate::{Quota, RetryAfter, State, TryAcquireError};

/// A bucket for each of up to `N` keys, all of one quota: 16 bytes a key, and the key with its padding.
///
/// A key that is not in use has a full bucket. A bucket that has become full again is like one that was never used,
/// so such keys make room when a new one comes; no key can push out another's debt. With all `N` keys in use, a new
/// key is refused, and told when there will be room. That protects those who are limited, and not those to come:
/// whoever can make up keys can take all places, and keep them by a token each now and then. Where keys are anybody's
/// to choose, limit what they are made of (a port, a subnet), or put a `TokenBucket` for all before these.
///
/// A call looks at every key in use: meant for some dozens.
///
/// # Examples
///
/// ```
/// use tollgate_core::{KeyedBuckets, KeyedError, Quota, quota};
///
/// let mut sources: KeyedBuckets<u8, 2> = KeyedBuckets::new(quota!(Quota::per_second(1)));
/// assert_eq!(sources.try_acquire_at(0, &7, 1), Ok(0));
/// assert!(matches!(sources.try_acquire_at(0, &7, 1), Err(KeyedError::Refused(_))));
/// assert_eq!(sources.try_acquire_at(400_000, &8, 1), Ok(0));
///
/// // Both are in use. Room comes when the first bucket is full again.
/// let Err(KeyedError::NoRoom { retry_after, .. }) = sources.try_acquire_at(400_000, &9, 1) else { panic!() };
/// assert_eq!(retry_after.duration().as_micros(), 600_000);
/// assert_eq!(sources.try_acquire_at(1_000_000, &9, 1), Ok(0));
/// ```
#[derive(Clone, Debug)]
pub struct KeyedBuckets<K, const N: usize> {
    quota: Quota,
    used: Vec<(K, State), N>,
    /// The latest time at which a full bucket was given up, in microseconds. Before that, nobody's is known to be
    /// full.
    given_up: u64,
}

impl<K: Eq + Clone, const N: usize> KeyedBuckets<K, N> {
    /// Makes the buckets, all full. No keys at all (`N` = 0) do not compile.
    #[inline]
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        const { assert!(N > 0, "buckets for no keys would refuse everything") };
        Self { quota, used: Vec::new(), given_up: 0 }
    }

    /// Returns the quota of each key.
    #[inline]
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Takes `n` tokens of `key` at the time `now`, in microseconds, and returns how many remain; or takes nothing.
    ///
    /// # Errors
    ///
    /// [`KeyedError::Refused`] as [`TokenBucket::try_acquire`](crate::TokenBucket::try_acquire) refuses;
    /// [`KeyedError::NoRoom`] if `key` is new and all others are in use.
    #[inline]
    pub fn try_acquire_at(&mut self, now: u64, key: &K, n: u32) -> Result<u32, KeyedError> {
        self.quota.check(n).map_err(KeyedError::Refused)?;
        let moment = self.quota.moment(now);
        let found = self.used.iter_mut().find(|(used, _)| used == key);
        let state = match &found {
            Some((_, state)) => state.refill(&self.quota, moment),
            None => State::new(&self.quota, u32::MAX, self.quota.moment(now.max(self.given_up))),
        };
        let next = state.take(n).ok_or(KeyedError::Refused(state.refusal(&self.quota, moment, n)))?;
        if n == 0 {
            return Ok(state.tokens());
        }
        match found {
            Some((_, state)) => *state = next,
            None => self.insert(now, key, next)?,
        }
        Ok(next.tokens())
    }

    /// Gives `n` tokens back to `key`; what would rise above the capacity is forfeited.
    #[inline]
    pub fn refund(&mut self, key: &K, n: u32) {
        if let Some((_, state)) = self.used.iter_mut().find(|(used, _)| used == key) {
            *state = state.refund(&self.quota, n);
        }
    }

    /// Returns how many tokens `key` has at the time `now`, in microseconds.
    #[inline]
    #[must_use]
    pub fn available_at(&self, now: u64, key: &K) -> u32 {
        let moment = self.quota.moment(now);
        let state = self.used.iter().find(|(used, _)| used == key);
        state.map_or(self.quota.capacity(), |(_, state)| state.refill(&self.quota, moment).tokens())
    }

    fn insert(&mut self, now: u64, key: &K, state: State) -> Result<(), KeyedError> {
        let Err(entry) = self.used.push((key.clone(), state)) else { return Ok(()) };
        let moment = self.quota.moment(now);
        let quota = &self.quota;
        let full = |state: &State| state.refill(quota, moment).tokens() == quota.capacity();
        if let Some(free) = self.used.iter_mut().find(|(_, state)| full(state)) {
            *free = entry;
            self.given_up = self.given_up.max(now);
            return Ok(());
        }
        let waits = self.used.iter().map(|(_, state)| state.wait(quota, moment, quota.capacity()));
        // There is one, since N > 0.
        let first = waits.min_by_key(RetryAfter::duration);
        let retry_after = first.unwrap_or(state.wait(quota, moment, quota.capacity()));
        Err(KeyedError::NoRoom { keys: N, retry_after })
    }
}

/// Why [`KeyedBuckets`] took nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum KeyedError {
    /// The key's own bucket refused.
    Refused(TryAcquireError),
    /// All keys are in use by others: try again after that time, or provide for more keys.
    #[non_exhaustive]
    NoRoom {
        /// How many keys there are.
        keys: usize,
        /// When the first of them makes room, if it is not used before.
        retry_after: RetryAfter,
    },
}

impl fmt::Display for KeyedError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::NoRoom { keys, retry_after } => {
                write!(f, "all {keys} keys are in use; retry after {:?}", retry_after.duration())
            }
        }
    }
}

impl core::error::Error for KeyedError {}
