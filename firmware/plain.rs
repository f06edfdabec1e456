//! A cell that nobody shares, so that what is measured is the bucket, and no masking of interrupts.

use core::cell::Cell;
use core::sync::atomic::Ordering;

use tollgate_core::Word;

pub struct Plain(pub Cell<u64>);

impl Word for Plain {
    #[inline]
    fn load(&self, _: Ordering) -> u64 {
        self.0.get()
    }

    #[inline]
    fn compare_exchange(&self, current: u64, new: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        let seen = self.0.get();
        if seen == current {
            self.0.set(new);
            Ok(seen)
        } else {
            Err(seen)
        }
    }
}
