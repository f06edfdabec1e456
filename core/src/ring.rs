//! The last events of a limiter, for somebody who watches.

use core::fmt;
use core::sync::atomic::Ordering::Relaxed;

use crate::{DefaultWord, Word};

/// The lowest bits of the head count those who watch; the others, the events.
const WATCHERS: u64 = 0xff;
const EVENT: u64 = 1 << 8;
/// Positions are of 56 bits: twenty years of a hundred million events a second.
const POSITIONS: u64 = u64::MAX >> 8;
/// Laps are of 12 bits, and none is 0, which a slot has that nobody has written.
const LAPS: u64 = 0xfff;

/// The last `N` events, each a `u64`: written by anybody, read by those who watch, in memory that all share.
///
/// It is armed only while somebody [watches](Self::watch). Events are for the eye and for control loops, not for
/// bookkeeping: whoever reads too late misses some, and is told how many.
///
/// ```text
/// head   56 bits: events so far      8 bits: who watches
/// slot   32 bits: microseconds      16 bits: count      4 bits: kind      12 bits: lap
/// ```
///
/// The lap tells which of the events that have the same slot it is. A writer that is held up until the lap after its own
/// has been written leaves that as it is; one that is held up for half of the 4095 laps may put its event over a
/// later one, which counts as missed, and after 4095 laps it may be taken for a later one.
///
/// # Memory ordering
///
/// Relaxed throughout: an event is one word, and says nothing of other memory.
///
/// # Progress
///
/// A write is wait-free where [`Word::fetch_add`] is: one load if nobody watches; else an addition, a load and an
/// exchange, and one more for each writer who was held up for a lap in the same slot. It can be in an interrupt. Reading
/// never holds up a writer.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Observation, ObservationRing, Observed, Quota, TokenBucket, quota};
///
/// const REFUSED: u8 = 1;
/// static BUCKET: TokenBucket = TokenBucket::new(quota!(Quota::per_second(10), burst 2));
/// static EVENTS: ObservationRing<64> = ObservationRing::new();
///
/// fn take(now: u64, n: u32) -> bool {
///     let granted = BUCKET.try_acquire_at(now, n).is_ok();
///     if !granted {
///         EVENTS.push(now, REFUSED, n);
///     }
///     granted
/// }
///
/// assert!(!take(0, 3)); // nobody sees it
/// let mut watcher = EVENTS.watch().unwrap();
/// assert!(take(0, 2));
/// assert!(!take(5, 1));
/// assert_eq!(watcher.read(), Some(Observed::Event(Observation { kind: REFUSED, count: 1, micros: 5 })));
/// assert_eq!(watcher.read(), None);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct ObservationRing<const N: usize, W = DefaultWord> {
    head: W,
    slots: [W; N],
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Observation {
    /// What happened, 0 to 15, as whoever writes numbers it.
    pub kind: u8,
    /// Of how many tokens, or `u16::MAX` if it is of more.
    pub count: u16,
    /// When, in the low bits of the microseconds that the writer gave; they come round after 71 minutes.
    pub micros: u32,
}

/// What a [`Watcher`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Observed {
    /// The next event.
    Event(Observation),
    /// Here were so many events that were gone before they were read.
    Missed(u64),
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl<const N: usize> ObservationRing<N> {
    /// Makes a ring that nobody watches. One without slots (`N` = 0) does not compile.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self::over(DefaultWord::new(0), [const { DefaultWord::new(0) }; N])
    }
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl<const N: usize> Default for ObservationRing<N> {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, W> ObservationRing<N, W> {
    /// Makes a ring of words that exist, as they are; of zeros, to begin with.
    #[inline]
    #[must_use]
    pub const fn over(head: W, slots: [W; N]) -> Self {
        const { assert!(N > 0, "a ring without slots would miss everything") };
        Self { head, slots }
    }
}

impl<const N: usize, W: Word> ObservationRing<N, W> {
    /// Writes an event, if anybody watches: its time in microseconds, its kind (the low four bits count), and of how
    /// many tokens it is.
    #[inline]
    pub fn push(&self, now: u64, kind: u8, count: u32) {
        if self.head.load(Relaxed) & WATCHERS != 0 {
            self.push_watched(now, kind, count);
        }
    }

    #[cold]
    fn push_watched(&self, now: u64, kind: u8, count: u32) {
        let position = self.head.fetch_add(EVENT, Relaxed) >> 8;
        let Some(slot) = self.slot(position) else { return };
        let lap = Self::lap(position);
        let event = (now << 32) | (u64::from(count.min(0xffff)) << 16) | (u64::from(kind & 0xf) << 12) | lap;
        let mut seen = slot.load(Relaxed);
        // Once more for each writer of a lap before who was held up until now: each writes once.
        while !is_past(seen & LAPS, lap) {
            match slot.compare_exchange(seen, event, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
    }

    /// Reads from the next event on, without arming the ring: where something else does. (For a ring that is armed by its first
    /// word, say, which is then 1; or while somebody else watches.)
    #[inline]
    #[must_use]
    pub fn follow(&self) -> Watcher<'_, N, W> {
        Watcher { ring: self, next: self.head.load(Relaxed) >> 8, counted: false }
    }

    /// Watches, from the next event on; `None` if 255 do already.
    #[inline]
    #[must_use]
    pub fn watch(&self) -> Option<Watcher<'_, N, W>> {
        let mut head = self.head.load(Relaxed);
        while head & WATCHERS != WATCHERS {
            match self.head.compare_exchange(head, head.wrapping_add(1), Relaxed, Relaxed) {
                Ok(_) => return Some(Watcher { ring: self, next: head >> 8, counted: true }),
                Err(other) => head = other,
            }
        }
        None
    }

    fn slot(&self, position: u64) -> Option<&W> {
        #[allow(clippy::cast_possible_truncation, reason = "below N")]
        self.slots.get(position.checked_rem(N as u64)? as usize)
    }

    /// The lap of a position, 1 to 4095.
    fn lap(position: u64) -> u64 {
        (position.checked_div(N as u64).unwrap_or(0) % LAPS).wrapping_add(1)
    }
}

/// Whether a slot that has this lap is written already, by the writer of `lap` or after it. They come round, and so what
/// is less than half of all ahead is past.
const fn is_past(found: u64, lap: u64) -> bool {
    let ahead = found.wrapping_add(LAPS).wrapping_sub(lap) % LAPS;
    found != 0 && ahead < LAPS / 2
}

/// Somebody who watches an [`ObservationRing`], until it is dropped.
///
/// A watcher that is never dropped (a killed process) leaves the ring armed. See [`ObservationRing`] for an example.
pub struct Watcher<'a, const N: usize, W: Word> {
    ring: &'a ObservationRing<N, W>,
    next: u64,
    /// Whether it is one of those that arm the ring.
    counted: bool,
}

impl<const N: usize, W: Word> Watcher<'_, N, W> {
    /// Reads the next event, or how many were missed before it; `None` if there is none yet.
    ///
    /// An event whose writer is held up holds up those after it, until it is written or `N` more have come.
    #[inline]
    pub fn read(&mut self) -> Option<Observed> {
        let ahead = (self.ring.head.load(Relaxed) >> 8).wrapping_sub(self.next) & POSITIONS;
        if ahead == 0 {
            return None;
        }
        let gone = ahead.saturating_sub(N as u64);
        if gone > 0 {
            self.go_on(gone);
            return Some(Observed::Missed(gone));
        }
        let word = self.ring.slot(self.next)?.load(Relaxed);
        let lap = ObservationRing::<N, W>::lap(self.next);
        if word & LAPS == lap {
            self.go_on(1);
            #[allow(clippy::cast_possible_truncation, reason = "the bits of each")]
            let event =
                Observation { kind: (word >> 12) as u8 & 0xf, count: (word >> 16) as u16, micros: (word >> 32) as u32 };
            Some(Observed::Event(event))
        } else if is_past(word & LAPS, lap) {
            self.go_on(1);
            Some(Observed::Missed(1))
        } else {
            None
        }
    }

    fn go_on(&mut self, events: u64) {
        self.next = self.next.wrapping_add(events) & POSITIONS;
    }
}

impl<const N: usize, W: Word> Drop for Watcher<'_, N, W> {
    #[inline]
    fn drop(&mut self) {
        // One less: there is one, so that the events are not touched.
        if self.counted {
            self.ring.head.fetch_add(u64::MAX, Relaxed);
        }
    }
}

impl<const N: usize, W: Word> fmt::Debug for Watcher<'_, N, W> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("next", &self.next).finish_non_exhaustive()
    }
}
