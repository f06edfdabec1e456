//! A word that counts what is written to it.

#![allow(missing_docs, unreachable_pub, clippy::arithmetic_side_effects, reason = "shared by tests")]

use core::cell::Cell;
use core::sync::atomic::Ordering;

use tollgate_core::{DefaultWord, Word};

/// Counts writes, successful or not.
pub struct Counted<'a> {
    pub word: DefaultWord,
    pub writes: &'a Cell<u32>,
}

impl Word for Counted<'_> {
    fn load(&self, order: Ordering) -> u64 {
        self.word.load(order)
    }

    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.writes.set(self.writes.get() + 1);
        self.word.compare_exchange(current, new, success, failure)
    }
}
