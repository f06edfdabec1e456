//! The unsafe code: atomic cells in a page that other processes map too, (in [`guard`]) what becomes of an access to a page
//! that is gone, and (in [`forks`]) how often this process was forked.

// The second door for atomics, beside the core's: the memory is not Rust's to own.
#![allow(clippy::disallowed_types)]

#[cfg_attr(not(unix), path = "mapping/no_forks.rs")]
pub(crate) mod forks;
#[cfg_attr(not(unix), path = "mapping/no_guard.rs")]
mod guard;

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use memmap2::{MmapOptions, MmapRaw};
use tollgate_core::{HandshakeHeader, Word, Words};

use crate::layout::{LENGTH, PAGE, Page, SEATS, Slot, Users};
use crate::system;

/// The state word of a bucket that has moved, as the core writes it.
pub(crate) const MOVED: u64 = 1;

/// A mapped limiter's file, [`LENGTH`] bytes long, shared with all who map it.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// Before the page, so that it is dropped first.
    _guard: Option<guard::Guard>,
    page: MmapRaw,
    writable: bool,
}

impl Mapping {
    /// Maps a file, for reading alone unless it is `writable`. With a guard, an access to a page that is gone reads
    /// zeros.
    pub(crate) fn new(file: &File, writable: bool, guarded: bool) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        let options = options.len(LENGTH);
        let page = if writable { options.map_raw(file)? } else { options.map_raw_read_only(file)? };
        let guard = if guarded { Some(guard::Guard::new(page.as_ptr().addr())?) } else { None };
        Ok(Self { _guard: guard, page, writable })
    }

    /// Maps a file that nobody else can name, and which children that are forked share, with this first page.
    pub(crate) fn in_memory(page: &Page) -> io::Result<Self> {
        let mut file = system::file_in_memory()?;
        file.write_all(page)?;
        file.set_len(LENGTH as u64)?;
        // Else memory that is short could be a signal later.
        system::allocate(&file, LENGTH as u64)?;
        Self::new(&file, true, false)
    }

    /// Returns who uses the limit; `None` on a mapping for reading alone.
    #[inline]
    pub(crate) fn users(&self) -> Option<&Users> {
        if !self.writable {
            return None;
        }
        let users = self.page.as_mut_ptr().wrapping_add(PAGE).cast::<Users>();
        // SAFETY: a reference asks for what [`cell`](Self::cell) proves for one word, of all words of `Users`.
        // - `Users` is made of `AtomicU64` alone, with `repr(C)` throughout: it has no padding, its alignment is 8, which PAGE
        //   is a multiple of, and any bits are valid.
        // - It lies within the mapping: PAGE + size_of::<Users>() is at most LENGTH, as `layout.rs` asserts.
        // - It is accessed as atomics alone, and the memory is writable, as std::sync::atomic asks for.
        Some(unsafe { &*users })
    }

    /// Returns who uses the limit, in cells that can be loaded on a mapping for reading too.
    pub(crate) fn header(&self) -> Box<HandshakeHeader<SEATS, Cell<'_>>> {
        let mut places = (PAGE..).step_by(size_of::<u64>());
        // There are more places than words.
        Box::new(HandshakeHeader::from_fn(|| self.cell(places.next().unwrap_or(PAGE))))
    }

    #[inline]
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// Returns the cell at an offset, a multiple of 8 within the page.
    #[inline]
    pub(crate) fn cell(&self, at: usize) -> Cell<'_> {
        const { assert!(LENGTH.is_power_of_two()) };
        // No other than such an offset can be meant; this makes sure of it.
        let at = at & (LENGTH - size_of::<AtomicU64>());
        let cell = self.page.as_mut_ptr().wrapping_add(at).cast::<u64>();
        // SAFETY: `AtomicU64::from_ptr` asks for three things.
        // - Aligned: mmap(2) returns an address at a page boundary, and `at` is a multiple of 8.
        // - Valid for reads and writes for the lifetime of the reference: the mapping is LENGTH bytes long, `at` is at
        //   most LENGTH − 8, and `self.page`, which unmaps on drop alone, is borrowed for as long. A mapping for
        //   reading alone is valid for atomic reads, and `Cell` then makes none but Relaxed loads, which
        //   std::sync::atomic allows on read-only memory.
        // - No non-atomic access races with it: this process makes the page accessible through this function alone, and
        //   only as atomics. What other processes do to the page is outside of this program's memory model, as for any
        //   shared mapping; on the hardware, their aligned 64-bit atomic accesses are coherent with ours.
        // A file that is truncated while it is mapped makes the access a signal (SIGBUS, mmap(2)), not a reference to
        // other memory; the guard then puts a page of zeros in its place.
        let cell = unsafe { AtomicU64::from_ptr(cell) };
        Cell { cell, writable: self.writable }
    }

    /// Returns the words of a bucket. If the slot comes to hold another generation, the state says that it has moved.
    #[inline]
    pub(crate) fn words(&self, slot: Slot, generation: u64) -> Words<BucketWord<'_>> {
        let state = BucketWord { cell: self.cell(slot.state), only_in: Some((self.cell(slot.number), generation)) };
        Words::new(state, BucketWord { cell: self.cell(slot.horizon), only_in: None })
    }
}

/// A 64-bit cell of a mapped file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    cell: &'a AtomicU64,
    writable: bool,
}

impl Word for Cell<'_> {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        let value = self.cell.load(Relaxed);
        if order != Relaxed {
            fence(order);
        }
        value
    }

    /// Fails where the mapping is for reading alone.
    #[inline]
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        if self.writable { self.cell.compare_exchange(current, new, success, failure) } else { Err(self.load(failure)) }
    }
}

impl Cell<'_> {
    /// Raises the value to `floor` if it is below, with Release; does nothing where the mapping is for reading alone.
    pub(crate) fn raise(&self, floor: u64) {
        if self.writable {
            self.cell.fetch_max(floor, Ordering::Release);
        }
    }

    /// Stores a value, with Release; does nothing where the mapping is for reading alone.
    pub(crate) fn store(&self, value: u64) {
        if self.writable {
            self.cell.store(value, Ordering::Release);
        }
    }
}

/// A word of a bucket in a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketWord<'a> {
    cell: Cell<'a>,
    /// The number of the generation that the slot holds, and the one that is meant.
    only_in: Option<(Cell<'a>, u64)>,
}

impl Word for BucketWord<'_> {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        match self.only_in {
            // The number is changed before the words are: if it is still right, the word was.
            Some((number, generation)) => {
                let word = self.cell.load(Acquire);
                if number.load(Relaxed) == generation { word } else { MOVED }
            }
            None => self.cell.load(order),
        }
    }

    #[inline]
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.cell.compare_exchange(current, new, success, failure)
    }
}
