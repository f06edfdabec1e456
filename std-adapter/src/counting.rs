//! In which seat of a file's header a call counts.
//!
//! Each thread has a number, while it lives, that no other thread of the process has. Each limiter has a table of which seat the
//! threads of each number have, so that nobody else writes to a seat: one load and one store for each count. Threads that come
//! later, or find no seat, share the common one.
//!
//! An entry of the table is good in the process that wrote it alone: a child that is forked takes seats of its own.

// As in `mapping.rs`: a process's own cells beside the shared ones.
#![allow(clippy::disallowed_types)]

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use tollgate_core::{Identity, Seat, Writers};

use crate::layout::Header;
use crate::mapping::forks;
use crate::system;

/// How many threads have numbers at a time; number 0 is nobody's.
const THREADS: usize = 64;

thread_local! {
    /// This thread's number, 0 as long as it has none.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
    /// Gives the number back when the thread ends.
    static NUMBERED: Numbered = const { Numbered };
}

/// The numbers in use, a bit each.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

struct Numbered;

impl Drop for Numbered {
    fn drop(&mut self) {
        let number = NUMBER.replace(0);
        if number != 0 {
            // Release, pairs with the Acquire of `take_number`: the next thread goes on from the counts of this one.
            NUMBERS.fetch_and(!(1 << number), Release);
        }
    }
}

/// In a child that was forked, this thread is the only one.
#[cfg_attr(not(unix), allow(dead_code, reason = "nothing forks"))]
pub(crate) fn in_the_child() {
    NUMBERS.store(1 | 1 << NUMBER.get(), Relaxed);
}

/// Takes a number for this thread, unless it has one, or all are taken.
fn take_number() -> usize {
    let number = NUMBER.get();
    // Where a thread is at its end already, nothing would give a number back.
    if number != 0 || NUMBERED.try_with(|_| ()).is_err() {
        return number;
    }
    let mut seen = NUMBERS.load(Relaxed);
    while let free @ 0..64 = seen.trailing_ones() {
        match NUMBERS.compare_exchange(seen, seen | 1 << free, Acquire, Relaxed) {
            Ok(_) => {
                NUMBER.set(free as usize);
                return free as usize;
            }
            Err(other) => seen = other,
        }
    }
    0
}

/// The seats of this process's threads, by their numbers.
#[derive(Debug)]
pub(crate) struct Table([AtomicU64; THREADS]);

/// The entry of a number whose seat is the common one.
const COMMON: u32 = u32::MAX;

impl Table {
    pub(crate) fn new() -> std::io::Result<Self> {
        forks::count()?;
        Ok(Self([const { AtomicU64::new(0) }; THREADS]))
    }

    /// Counts in the seat of this thread.
    #[inline(always)]
    pub(crate) fn count(&self, header: &Header, count: impl Fn(&Seat, Writers)) {
        match self.own_seat(header) {
            Some(seat) => count(seat, Writers::One),
            None => {
                let (seat, by) = self.find_seat(header);
                count(seat, by);
            }
        }
    }

    #[inline(always)]
    fn own_seat<'a>(&self, header: &'a Header) -> Option<&'a Seat> {
        let entry = self.0.get(NUMBER.get())?.load(Relaxed);
        let (generation, index) = ((entry >> 32) as u32, entry & u64::from(u32::MAX));
        if generation != forks::generation() {
            return None;
        }
        header.seat(usize::try_from(index).ok()?)
    }

    /// Finds a seat for a thread that has none of its own.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_seat<'a>(&self, header: &'a Header) -> (&'a Seat, Writers) {
        let common = (header.common(), Writers::Many);
        let number = take_number();
        let Some(entry) = self.0.get(number).filter(|_| number != 0) else { return common };
        let index = match entry.load(Relaxed) {
            seen if (seen >> 32) as u32 == forks::generation() => COMMON,
            _ => {
                let index = attach(header).and_then(|index| u32::try_from(index).ok()).unwrap_or(COMMON);
                entry.store(u64::from(forks::generation()) << 32 | u64::from(index), Relaxed);
                index
            }
        };
        usize::try_from(index).ok().and_then(|index| header.seat(index)).map_or(common, |seat| (seat, Writers::One))
    }

    /// Gives back the seats that this process has taken by this table.
    pub(crate) fn leave(&self, header: &Header) {
        let Some(who) = this_process() else { return };
        for entry in &self.0 {
            let entry = entry.load(Relaxed);
            if (entry >> 32) as u32 == forks::generation() {
                header.leave(usize::try_from(entry & u64::from(u32::MAX)).unwrap_or(usize::MAX), who);
            }
        }
    }
}

fn attach(header: &Header) -> Option<usize> {
    let who = this_process()?;
    header.attach(who, |other| is_gone(other, who))
}

/// Who this process is; `None` if the system does not say.
pub(crate) fn this_process() -> Option<Identity> {
    /// The fork generation of the last answer, and that.
    static KNOWN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    let [generation, word] = &KNOWN;
    // Acquire, pairs with the Release below.
    if generation.load(Acquire) == u64::from(forks::generation()) {
        return Identity::from_bits(word.load(Relaxed));
    }
    // Else a child that is forked would go by what is known of its parent.
    forks::count().ok()?;
    let who = identity(std::process::id(), system::pid_space()?)?;
    word.store(who.to_bits(), Relaxed);
    generation.store(forks::generation().into(), Release);
    Some(who)
}

/// Who has a process id; `None` if nobody has, or that can't be known. When it was started is 20 bits of the time, about three
/// hours, and above them 5 bits of which start of the machine that counts from.
fn identity(process: u32, space: u32) -> Option<Identity> {
    let started = system::started(process)? & ((1 << TIME_BITS) - 1);
    // Windows tells it by clocks, and not for sure.
    let boot = if cfg!(windows) { 0 } else { u64::from(crc32fast::hash(system::boot_id().ok()?.as_bytes())) };
    Some(Identity::new(process, boot << TIME_BITS | started, space))
}

const TIME_BITS: u32 = 20;

/// Whether a process has ended: as far as can be known, and so, since the machine was started, never of another space of process
/// ids.
pub(crate) fn is_gone(other: Identity, who: Identity) -> bool {
    if other.started() >> TIME_BITS != who.started() >> TIME_BITS {
        return true;
    }
    if !other.is_in_the_space_of(who) {
        return false;
    }
    let process = other.number();
    if !system::exists(process) {
        return true;
    }
    // Another one by now has this number, if it was started at another time.
    let is_another = |started| (started ^ u64::from(other.started())) & ((1 << TIME_BITS) - 1) != 0;
    system::started(process).is_some_and(is_another)
}
