//! The only unsafe code: atomic cells in a page that other processes map too.

// The second door for atomics, beside the core's: the memory is not Rust's to own.
#![allow(clippy::disallowed_types)]

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use tollgate_core::{Word, Words};

use crate::layout::{HORIZON, LENGTH, STATE};

/// A 64-bit cell at `OFFSET` of a mapped limiter's file. Keeps the mapping alive.
#[derive(Debug)]
pub(crate) struct MappedWord {
    page: Arc<MmapRaw>,
    offset: usize,
}

const _: () = assert!(STATE.is_multiple_of(align_of::<AtomicU64>()) && STATE + size_of::<AtomicU64>() <= LENGTH);
const _: () = assert!(HORIZON.is_multiple_of(align_of::<AtomicU64>()) && HORIZON + size_of::<AtomicU64>() <= LENGTH);

/// Maps a limiter's file, [`LENGTH`] bytes long, for reading and writing, shared with all who map it.
pub(crate) fn map(file: &File) -> io::Result<Words<MappedWord>> {
    let page = Arc::new(MmapOptions::new().len(LENGTH).map_raw(file)?);
    let state = MappedWord { page: page.clone(), offset: STATE };
    Ok(Words::new(state, MappedWord { page, offset: HORIZON }))
}

impl MappedWord {
    #[inline]
    fn cell(&self) -> &AtomicU64 {
        let cell = self.page.as_mut_ptr().wrapping_add(self.offset).cast::<u64>();
        // SAFETY: `AtomicU64::from_ptr` asks for three things.
        // - Aligned: mmap(2) returns an address at a page boundary, and `offset` is STATE or HORIZON, both multiples of
        //   8 (asserted above).
        // - Valid for reads and writes for the lifetime of the reference: the mapping was made readable and writable,
        //   LENGTH bytes long, and both cells end within it (asserted above). `MmapRaw` unmaps on drop alone, and
        //   `self.page` holds it for as long as `self` is borrowed.
        // - No non-atomic access races with it: this process makes the page accessible through this function alone, and
        //   only as atomics. What other processes do to the page is outside of this program's memory model, as for any
        //   shared mapping; on the hardware, their aligned 64-bit atomic accesses are coherent with ours.
        // A file that is truncated while it is mapped makes the access a signal (SIGBUS, mmap(2)), not a reference to
        // other memory.
        unsafe { AtomicU64::from_ptr(cell) }
    }
}

impl Word for MappedWord {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.cell().load(order)
    }

    #[inline]
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.cell().compare_exchange(current, new, success, failure)
    }

    #[inline]
    fn fetch_max(&self, floor: u64, order: Ordering) -> u64 {
        self.cell().fetch_max(floor, order)
    }
}
