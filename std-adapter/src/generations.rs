//! The quota of a file and its bucket, one generation after the other.
//!
//! A quota is never changed in place. Whoever sets another one writes a new generation into the next slot: its
//! number, its quota, and then its bucket, by [`TokenBucket::hand_over_at`], which seals the old bucket in the same
//! instant in which the new one gets its level. Who comes to a sealed bucket goes on to the next generation. So
//! nobody needs to be told, nobody waits, and a setter that dies has either done it or not.
//!
//! The slots take turns. A process that has slept through sixteen generations finds another number in its slot, which
//! is compared after each load of the state (see [`Mapping::words`]), and looks for the latest one anew.
//!
//! Setters exclude each other, and nobody else.

// As in `mapping.rs`: a process's own cells beside the shared ones.
#![allow(clippy::disallowed_types)]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

use tollgate_core::{Clock, MAX_ATTEMPTS, Quota, QuotaCell, TokenBucket, TryAcquireError, Word, Words};

use crate::clock::FileClock;
use crate::layout::{FIRST, Flaw, quota_words, read_quota, slot};
use crate::mapping::{BucketWord, MOVED, Mapping};

/// The bucket of one generation, made for one call.
pub(crate) type Bucket<'a> = TokenBucket<FileClock, Words<BucketWord<'a>>>;

/// One generation's number and quota.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) quota: Quota,
}

impl Generation {
    #[inline]
    pub(crate) fn bucket(self, page: &Mapping, clock: FileClock) -> Bucket<'_> {
        TokenBucket::over(self.quota, page.words(slot(self.number), self.number), clock)
    }

    /// Finds the latest in a file.
    pub(crate) fn latest(page: &Mapping) -> Result<Self, Flaw> {
        let load = |at| page.cell(at).load(Acquire);
        let mut number = load(FIRST);
        for _ in 0..MAX_ATTEMPTS {
            let slot = slot(number);
            let (words, state) = (slot.quota.map(load), load(slot.state));
            // The number is changed first: if it is still right, the others were.
            if load(slot.number) != number {
                number = load(FIRST);
            } else if state == MOVED {
                number = number.wrapping_add(1);
            } else {
                return Ok(Self { number, quota: read_quota(words)? });
            }
        }
        Err(Flaw::Content("none of its slots is in use".to_owned()))
    }

    /// Writes the next generation, with this quota, and hands the level over to it. One process at a time, please.
    pub(crate) fn succeed(page: &Mapping, clock: FileClock, quota: Quota) -> Result<Self, Unchanged> {
        let current = Self::latest(page).map_err(Unchanged::Flaw)?;
        if current.quota == quota {
            return Ok(current);
        }
        // So that nobody starts from a slot that is about to be used again. It is one behind from then on, which costs
        // a step.
        page.cell(FIRST).store(current.number);
        let next = Self { number: current.number.wrapping_add(1), quota };
        let slot = slot(next.number);
        page.cell(slot.number).store(next.number);
        for (at, word) in slot.quota.into_iter().zip(quota_words(&quota)) {
            page.cell(at).store(word);
        }
        let heir = next.bucket(page, clock);
        current.bucket(page, clock).hand_over_at(clock.now_micros(), &heir).map_err(Unchanged::Refused)?;
        Ok(next)
    }
}

/// Why there is no next generation.
#[derive(Debug)]
pub(crate) enum Unchanged {
    Flaw(Flaw),
    Refused(TryAcquireError),
}

/// The latest generation that this process knows of.
#[derive(Debug)]
pub(crate) struct Known {
    number: AtomicU64,
    quota: QuotaCell,
}

/// The number while the quota is being replaced. No slot has it, so that a bucket of this number has moved.
const BUSY: u64 = u64::MAX;

impl Known {
    pub(crate) const fn new(first: Generation) -> Self {
        Self { number: AtomicU64::new(first.number), quota: QuotaCell::new(first.quota) }
    }

    /// Returns the generation; `None` while it is being replaced.
    #[inline]
    pub(crate) fn get(&self) -> Option<Generation> {
        // Acquire, pairs with the Release in `learn`: the quota is that of this number, or of a later one.
        let number = self.number.load(Acquire);
        let quota = self.quota.load();
        // Pairs with the fence in `learn`: who has read any of a later quota finds that the number is gone.
        fence(Acquire);
        (self.number.load(Relaxed) == number).then_some(Generation { number, quota })
    }

    /// Returns the quota as it is known, or about to be.
    pub(crate) fn quota(&self) -> Quota {
        self.quota.load()
    }

    /// Replaces an earlier generation. If somebody else is at it, or was and has died in a fork, nothing is done: the
    /// calls of this process then go by the file. Tells whether this call has replaced it.
    pub(crate) fn learn(&self, latest: Generation) -> bool {
        let seen = self.number.load(Relaxed);
        // BUSY is the largest.
        let mine = seen < latest.number && self.number.compare_exchange(seen, BUSY, Relaxed, Relaxed).is_ok();
        if mine {
            fence(Release);
            self.quota.store(&latest.quota);
            self.number.store(latest.number, Release);
        }
        mine
    }
}
