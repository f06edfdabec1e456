//! A hardware counter that wraps, as a clock that does not.

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::time::Duration;

use crate::tick::Reciprocal;
use crate::{Clock, DefaultWord, Word};

/// Counts are converted in units of 2^20 µs, more than a second, of which no count is longer.
const UNIT_LOG2: u32 = 20;

/// What a hardware counter is: how wide, and how fast.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Counter {
    /// The largest value, all of whose bits are ones.
    mask: u32,
    /// Units in a count: 10^6 / (2^20 · frequency).
    units: Reciprocal,
}

impl Counter {
    /// Describes a counter of `bits` bits, 8 to 32, that counts `hertz` times a second, 1 or more.
    ///
    /// # Errors
    ///
    /// [`CounterError`] if an argument is out of range, or the counter comes round so soon that its
    /// [`max_gap`](Self::max_gap) would be below a microsecond.
    #[inline]
    pub const fn new(bits: u32, hertz: u32) -> Result<Self, CounterError> {
        if bits < 8 || bits > 32 || hertz == 0 {
            return Err(CounterError { bits, hertz });
        }
        let units = Reciprocal::new(1_000_000, (hertz as u128) << UNIT_LOG2);
        let counter = Self { mask: u32::MAX >> 32_u32.saturating_sub(bits), units };
        if counter.max_gap().is_zero() { Err(CounterError { bits, hertz }) } else { Ok(counter) }
    }

    /// Returns the longest time that may pass between two readings: fifteen sixteenths of the counter's turn, in
    /// whole microseconds. After a longer one, the clock is late for good, by the turns that it missed.
    #[inline]
    #[must_use]
    pub const fn max_gap(&self) -> Duration {
        Duration::from_micros(self.micros(self.longest() as u64))
    }

    /// The most counts that are taken for time that has passed. More are taken for a reading that is older than the
    /// last.
    const fn longest(&self) -> u32 {
        self.mask.wrapping_sub(self.mask >> 4)
    }

    /// The last count, and what the counter shows now, as the count now.
    #[inline]
    const fn extend(&self, last: u64, shown: u32) -> u64 {
        #[allow(clippy::cast_possible_truncation, reason = "the low half is what the counter shows")]
        let since = shown.wrapping_sub(last as u32) & self.mask;
        // A reading that is older would be of before the first count.
        let none_older = last < (self.mask as u64).wrapping_add(1).wrapping_sub(since as u64);
        if since <= self.longest() || none_older { last.saturating_add(since as u64) } else { last }
    }

    /// floor(count · 10^6 / hertz).
    #[inline]
    const fn micros(&self, count: u64) -> u64 {
        // count < 2^64, so that the product errs by less than 2^-64 units, 2^-44 µs; the exact value is a multiple of
        // 1/hertz µs, more than 2^-33.
        let micros = self.units.times(count) >> (64 - UNIT_LOG2);
        #[allow(clippy::cast_possible_truncation, reason = "compared before")]
        if micros < u64::MAX as u128 { micros as u64 } else { u64::MAX }
    }
}

/// The width or the frequency of a counter is out of range: give 8 to 32 bits, and 1 Hz or more, but not so many that
/// the counter comes round in about a microsecond. A prescaler makes it slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct CounterError {
    /// The width asked for, in bits.
    pub bits: u32,
    /// The frequency asked for, in Hz.
    pub hertz: u32,
}

impl fmt::Display for CounterError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bits, hertz } = self;
        write!(f, "a counter of {bits} bits at {hertz} Hz; it must have 8 to 32 bits, count once a second or more, ")?;
        f.write_str("and take 16/15 of a microsecond or longer to come round")
    }
}

impl core::error::Error for CounterError {}

/// A [`Clock`] of 64 bits on a hardware [`Counter`] that wraps.
///
/// It must be read at least once in each [`max_gap`](Counter::max_gap), by whoever: a timer interrupt does. (From one
/// time that `read` is called to the next; a call that is held up before has not read it yet.) Threads and interrupts
/// may read it at once. Readings never go back, and convert the count exactly, without a division.
///
/// The counter must wrap at 2^bits: set a timer that can be reloaded to do so at its largest value. The time from its
/// start to the first reading counts as a gap, too; and while it stops, as some do in sleep, so does the time.
///
/// A counter that counts down needs a `read` that returns its complement (`!value`).
///
/// # Memory ordering
///
/// The counter is read after the last count was seen (Acquire), and before the new one is published (Release), so
/// that no reading is older than the count that it extends.
///
/// # Progress
///
/// Lock-free wherever the [`Word`] is: a call reads again only if another has published its count meanwhile.
///
/// # Examples
///
/// ```
/// use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
/// use core::time::Duration;
/// use tollgate_core::{Clock, Counter, CounterClock};
///
/// // 24 bits at 16 MHz: read it at least once a second.
/// const SYSTICK: Counter = match Counter::new(24, 16_000_000) {
///     Ok(counter) => counter,
///     Err(_) => panic!(),
/// };
/// assert_eq!(SYSTICK.max_gap(), Duration::from_micros(983_040));
///
/// static REGISTER: AtomicU32 = AtomicU32::new(0);
/// static CLOCK: CounterClock = CounterClock::new(SYSTICK, || REGISTER.load(Ordering::Relaxed));
///
/// REGISTER.store(0xff_fff0, Ordering::Relaxed); // wherever it starts
/// let before = CLOCK.now_micros();
/// REGISTER.store(0x10, Ordering::Relaxed); // it has wrapped, 32 counts later
/// assert_eq!(CLOCK.now_micros() - before, 2);
///
/// // Where the target has no 64-bit atomics, the count is in a word of yours.
/// let last = AtomicU64::new(0);
/// let clock = CounterClock::over(SYSTICK, || REGISTER.load(Ordering::Relaxed), &last);
/// assert_eq!(clock.now_micros(), 1); // 16 counts since it started at 0
///
/// assert!(Counter::new(33, 16_000_000).is_err());
/// ```
#[derive(Debug)]
pub struct CounterClock<F = fn() -> u32, W = DefaultWord> {
    counter: Counter,
    read: F,
    /// The last count, extended to 64 bits.
    last: W,
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl<F> CounterClock<F> {
    /// Makes a clock of what `read` returns, of which bits above the counter's are ignored. Its time starts at count
    /// 0.
    #[inline]
    #[must_use]
    pub const fn new(counter: Counter, read: F) -> Self {
        Self::over(counter, read, DefaultWord::new(0))
    }
}

impl<F, W> CounterClock<F, W> {
    /// Makes a clock whose last count is kept in a word of yours, 0 at first. Otherwise `new`.
    #[inline]
    #[must_use]
    pub const fn over(counter: Counter, read: F, last: W) -> Self {
        Self { counter, read, last }
    }

    /// Returns the counter.
    #[inline]
    #[must_use]
    pub const fn counter(&self) -> &Counter {
        &self.counter
    }
}

impl<F: Fn() -> u32, W: Word> Clock for CounterClock<F, W> {
    #[inline]
    fn now_micros(&self) -> u64 {
        // Acquire, pairs with the Release below: the counter is read after whoever published this count had read it.
        let mut last = self.last.load(Acquire);
        loop {
            let count = self.counter.extend(last, (self.read)());
            // Release for whoever extends this count; Acquire for the count to extend next.
            match self.last.compare_exchange(last, count, Release, Acquire) {
                Ok(_) => return self.counter.micros(count),
                // Others have published one. If this call was held up for so long that the counter came round, its
                // own is of a turn before.
                Err(theirs) => last = theirs,
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 30 } else { 20_000 }))]

        #[test]
        fn counts_are_converted_exactly(hertz in 1..=u32::MAX, count: u64, bits in 0..64_u32) {
            let (counter, count) = (Counter::new(32, hertz).unwrap(), count >> bits);
            let exact = u128::from(count) * 1_000_000 / u128::from(hertz);
            prop_assert_eq!(u128::from(counter.micros(count)), exact.min(u64::MAX.into()));
        }

        #[test]
        fn a_count_is_extended_over_its_turns(bits in 8..=32_u32, last in 0..1_u64 << 62, since: u32) {
            let counter = Counter::new(bits, 1).unwrap();
            let since = since & counter.mask;
            let shown = u32::try_from((last + u64::from(since)) & u64::from(counter.mask)).unwrap();
            let garbage = if bits == 32 { 0 } else { u32::MAX << bits };
            let now = counter.extend(last, shown | garbage);
            // A reading that is older than the last by up to a sixteenth of a turn changes nothing.
            let older = since > counter.longest() && last + u64::from(since) > u64::from(counter.mask);
            prop_assert_eq!(now, if older { last } else { last + u64::from(since) });
        }
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        for (bits, hertz) in [(7, 1), (33, 1), (0, 1), (32, 0), (u32::MAX, u32::MAX), (8, 240_000_001)] {
            let error = Counter::new(bits, hertz).unwrap_err();
            assert_eq!(error, CounterError { bits, hertz });
        }
        assert_eq!(Counter::new(8, 240_000_000).unwrap().max_gap(), Duration::from_micros(1));
    }
}
