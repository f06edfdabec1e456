//! The machine's clock, read by the processor's counter.
//!
//! A reading of the kernel's clock costs some 30 ns, one of the counter 10. So the counter is read and converted, by
//! a line through an *anchor*: a reading of both at once, and the speed of the one in terms of the other. Anchors are
//! renewed twenty times a second, by whichever call comes by, so that the line follows the kernel's clock even where
//! that is being corrected: by at most 500 ppm either way (adjtimex(2)), so that it is off by less than 50 µs until
//! the next anchor.
//!
//! No call waits for another. Anchors take turns in a ring: one is written, then published, and a reader that was
//! held up for so long that its anchor has been written again finds out by the number.
//!
//! For one thread, time never goes back: where the line was ahead of the kernel's clock, the next one starts from
//! where it was, and is slower, so that the clock catches up.

// As in `generations.rs`: cells of the process's own.
#![allow(clippy::disallowed_types)]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::time::Duration;

use tollgate_core::Clock;

use crate::{counter, system};

/// Until an anchor is renewed, in [`Fine`] time.
const RENEWED: Fine = fine_of_micros(45_000);
/// Between the first two anchors, which tell the counter's speed to some millionths.
const LEARNING: Fine = fine_of_micros(20_000);
/// The longest that reading both clocks may take, to be an anchor.
const TOGETHER: Fine = fine_of_micros(20);
/// From the reading of an anchor until it is published, at most: an older one is thrown away.
const PROMPT: Fine = fine_of_micros(1000);
/// How far an anchor is ahead of the kernel's clock, at least: more than that can gain until it is published.
const AHEAD: Fine = fine_of_micros(2);
/// The counter may be so many counts behind an anchor, because another processor's is, or because it was read before.
const BEHIND: u64 = 1 << 32;

/// Time in 2^-11 µs: as fine as a nanosecond, and as long as a reading can be.
type Fine = u64;

const fn fine_of_micros(micros: u64) -> Fine {
    micros << 11
}

fn fine_of_nanos(nanos: u64) -> Fine {
    u64::try_from((u128::from(nanos) << 11) / 1000).unwrap_or(u64::MAX)
}

/// The time of [`MachineClock`](crate::MachineClock), read by the processor's counter: up to three times as
/// fast, as the processor is, and within 50 µs of it.
///
/// It follows the same time, so that it can share a bucket with other clocks. For one thread it never goes back. What
/// it is off by widens the bound of a limit by as much: at most burst + rate × (time + 50 µs) tokens are granted.
///
/// It needs no calibration: the first calls of a process, for 20 ms, read the kernel's clock, and learn the counter's
/// speed. On x86-64 the counter is used where the kernel uses it for its own clock, and on aarch64 likewise, on
/// Linux; elsewhere this clock *is* [`MachineClock`](crate::MachineClock). A machine that is stopped and moved to
/// another while it runs has another counter; for the twentieth of a second until the next anchor, the time may be
/// off by as much.
///
/// # Examples
///
/// ```
/// use tollgate::{Clock, FastClock, MachineClock};
///
/// let before = MachineClock.now_micros();
/// let now = FastClock.now_micros();
/// let error = FastClock::MAX_ERROR.as_micros() as u64;
/// assert!(now + error >= before);
/// assert!(now <= MachineClock.now_micros() + error);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct FastClock;

impl FastClock {
    /// The most that a reading is off by, either way.
    pub const MAX_ERROR: Duration = Duration::from_micros(50);
}

impl Clock for FastClock {
    #[inline]
    fn now_micros(&self) -> u64 {
        let count = counter::read();
        match CLOCK.latest().and_then(|line| line.at(count)) {
            Some(micros) => micros,
            None => CLOCK.renew(),
        }
    }
}

static CLOCK: Anchors = Anchors::new();

/// The counter and the time at one moment, and what comes after it.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    count: u64,
    time: Fine,
    /// The time of a count, in 2^-32; 0 if it is not known yet.
    speed: u64,
    /// What the kernel's clock showed, where the time is ahead of it.
    kernel: Fine,
    /// In how many counts the anchor is to be renewed; 0 if the speed is not known yet.
    lasts: u64,
}

impl Line {
    /// The line from an anchor, with a speed.
    fn through(count: u64, time: Fine, speed: u64, kernel: Fine) -> Self {
        let lasts = (u128::from(RENEWED) << 32).checked_div(speed.into()).unwrap_or(0);
        Self { count, time, speed, kernel, lasts: u64::try_from(lasts).unwrap_or(u64::MAX) }
    }

    /// The time at a count, in microseconds, if the anchor is not to be renewed, and was read before.
    #[inline]
    fn at(self, count: u64) -> Option<u64> {
        let counts = count.wrapping_sub(self.count);
        // Below 2^59: until the anchor is to be renewed, less than that passes.
        let passed = counts.wrapping_mul(self.speed) >> 32;
        (counts < self.lasts).then(|| self.time.wrapping_add(passed) >> 11)
    }

    /// The counts since the anchor: none if the counter is a little behind. `None` if it has started anew.
    fn counts_until(self, count: u64) -> Option<u64> {
        let counts = count.wrapping_sub(self.count);
        if counts < BEHIND.wrapping_neg() { Some(counts) } else { (self.count >= BEHIND).then_some(0) }
    }

    /// The time of so many counts.
    fn passed(self, counts: u64) -> Fine {
        let passed = (u128::from(counts) * u128::from(self.speed)) >> 32;
        u64::try_from(passed).unwrap_or(u64::MAX)
    }

    /// The time after so much, at most that of the end of the line, where it stands still.
    fn shown(self, passed: Fine) -> Fine {
        self.time.saturating_add(passed.min(RENEWED))
    }

    /// The line that goes on from this one through another reading of both clocks.
    fn next(self, count: u64, kernel: Fine) -> Self {
        let counts = self.counts_until(count).unwrap_or(0);
        let speed = speed(kernel.saturating_sub(self.kernel), counts);
        // Not behind what was shown by this line, nor by the kernel's clock while this one is published.
        let now = self.shown(self.passed(counts)).max(kernel.saturating_add(AHEAD));
        if self.speed == 0 {
            return Self::through(count, now, speed, kernel);
        }
        // The last one may have been slowed down by half. What is neither that nor the counter's speed is that of a
        // counter that has started anew, while the machine slept: it is learned again.
        if speed < self.speed - self.speed / 64 || speed / 2 > self.speed + self.speed / 64 {
            return Self::through(count, now, 0, kernel);
        }
        // Where the line was ahead, time goes on from there, and slower, so that it is right again at the next anchor.
        let slower = RENEWED.saturating_sub(now.saturating_sub(kernel)).max(RENEWED / 2);
        let speed = u128::from(speed) * u128::from(slower) / u128::from(RENEWED);
        Self::through(count, now, u64::try_from(speed).unwrap_or(0), kernel)
    }
}

/// The time of a count, in 2^-32; 0 if that can't be told.
fn speed(passed: Fine, counts: u64) -> u64 {
    let speed = (u128::from(passed) << 32).checked_div(counts.into()).unwrap_or(0);
    u64::try_from(speed).unwrap_or(0)
}

/// How many anchors take turns.
const TURNS: usize = 4;

/// The cells of a line, in a cache line of their own: the hot path reads them, and one writer in a while writes
/// another.
#[repr(align(64))]
struct Anchor([AtomicU64; 5]);

struct Anchors {
    /// How many anchors there have been; 0 before the first.
    number: AtomicU64,
    lines: [Anchor; TURNS],
    /// The process that is writing an anchor; 0 if none is. A child that is forked meanwhile has another number.
    writer: AtomicU32,
}

impl Anchors {
    const fn new() -> Self {
        // Without a speed, so that nobody goes by it before it is written.
        let lines = [const { Anchor([const { AtomicU64::new(0) }; 5]) }; TURNS];
        Self { number: AtomicU64::new(0), lines, writer: AtomicU32::new(0) }
    }

    /// Reads the latest anchor; `None` if it was written again meanwhile.
    #[inline]
    fn latest(&self) -> Option<Line> {
        // Acquire, pairs with the Release in `publish`.
        let number = self.number.load(Acquire);
        let [count, time, speed, kernel, lasts] = self.line(number).each_ref().map(|word| word.load(Relaxed));
        // Pairs with the fence in `publish`: who has read any of a later line finds a later number.
        fence(Acquire);
        let overtaken = self.number.load(Relaxed).wrapping_sub(number) >= TURNS as u64 - 1;
        (!overtaken).then_some(Line { count, time, speed, kernel, lasts })
    }

    #[inline]
    fn line(&self, number: u64) -> &[AtomicU64; 5] {
        #[allow(clippy::cast_possible_truncation, reason = "the lowest bits count")]
        #[allow(clippy::indexing_slicing, reason = "less than TURNS")]
        &self.lines[number as usize % TURNS].0
    }

    /// Writes the next anchor, unless somebody else is at it. The caller is the writer.
    fn publish(&self, line: Line) {
        let number = self.number.load(Relaxed).wrapping_add(1);
        // Readers of the line that is written over know, from the number of the one before this, that they are
        // overtaken.
        fence(Release);
        for (word, value) in self.line(number).iter().zip([line.count, line.time, line.speed, line.kernel, line.lasts])
        {
            word.store(value, Relaxed);
        }
        self.number.store(number, Release);
    }

    /// Renews the anchor if it is time, and returns the time in microseconds.
    #[cold]
    #[inline(never)]
    fn renew(&self) -> u64 {
        let kernel = system::now_nanos() / 1000;
        if self.number.load(Relaxed) == 0 {
            if self.enter() {
                let (_, count, kernel) = read_both();
                self.publish(Line::through(count, kernel, 0, kernel));
                self.leave();
            }
            return kernel;
        }
        let learns = |line: &Line| line.speed == 0;
        if self.latest().is_some_and(|line| (!learns(&line) || usable()) && line.is_due(kernel)) && self.enter() {
            let (took, count, now) = read_both();
            // Once more, since somebody may just have left.
            let line = self.latest().filter(|line| line.is_due(kernel));
            // Interrupted each time: perhaps at the next call.
            let together = |line: &Line| learns(line) || line.passed(took) < TOGETHER;
            // Held up since, others have read the kernel's clock meanwhile, and would find the line behind it.
            let prompt = fine_of_nanos(system::now_nanos()).saturating_sub(now) < PROMPT;
            if let Some(line) = line.filter(together).filter(|_| prompt) {
                self.publish(line.next(count, now));
            }
            self.leave();
        }
        // After the kernel's clock: a line that was published before is ahead of that reading. Past the end of a line,
        // while somebody is renewing it, the kernel's clock goes on.
        let Some(line) = self.latest() else { return kernel };
        let count = counter::read();
        let counts = line.counts_until(count).unwrap_or(0);
        line.at(count).unwrap_or_else(|| kernel.max(line.shown(line.passed(counts)) >> 11))
    }

    fn enter(&self) -> bool {
        let (own, writer) = (std::process::id(), self.writer.load(Relaxed));
        writer != own && self.writer.compare_exchange(writer, own, AcqRel, Relaxed).is_ok()
    }

    fn leave(&self) {
        self.writer.store(0, Release);
    }
}

impl Line {
    /// Whether the kernel's clock, in microseconds, says that the anchor is old enough for another.
    fn is_due(&self, kernel: u64) -> bool {
        let age = fine_of_micros(kernel).saturating_sub(self.time);
        age >= if self.speed == 0 { LEARNING } else { RENEWED / 2 }
    }
}

/// Reads the counter and the kernel's clock at one moment, as well as can be, and tells how many counts that took.
fn read_both() -> (u64, u64, Fine) {
    let attempt = |_| {
        let before = counter::read();
        let kernel = system::now_nanos();
        let took = counter::read().wrapping_sub(before);
        (took, before.wrapping_add(took / 2), fine_of_nanos(kernel))
    };
    // The quickest of a few was not interrupted.
    (0..5).map(attempt).min().unwrap_or_default()
}

/// Whether the kernel keeps its own time by the counter. Looked up once, or by several at once, and without a lock
/// that a child could be forked under.
fn usable() -> bool {
    /// Not looked up yet.
    const UNKNOWN: u32 = 2;
    static USABLE: AtomicU32 = AtomicU32::new(UNKNOWN);
    match USABLE.load(Relaxed) {
        UNKNOWN => {
            let usable = counter::KERNEL_CLOCK.is_some_and(|name| system::kernel_clock().as_deref() == Some(name));
            USABLE.store(u32::from(usable), Relaxed);
            usable
        }
        known => known == 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MachineClock;

    /// A counter of 3 counts a nanosecond, that has been running for a while.
    fn count(nanos: u64) -> u64 {
        (1 << 40) + nanos * 3
    }

    fn start(nanos: u64) -> Line {
        Line::through(count(0), fine_of_nanos(nanos), 0, fine_of_nanos(nanos))
    }

    #[test]
    fn a_line_goes_through_two_readings() {
        let first = start(7_000_000_000);
        assert_eq!(first.at(count(1)), None, "the speed is not known");
        let line = first.next(count(20_000_000), fine_of_nanos(7_020_000_000));
        // Two microseconds ahead, from the start.
        assert_eq!(line.at(count(20_000_000)), Some(7_020_002));
        assert_eq!(line.at(count(50_000_999)), Some(7_050_002));
        assert!(line.at(count(64_900_000)).is_some_and(|time| (7_064_901..=7_064_902).contains(&time)));
        assert_eq!(line.at(count(65_100_000)), None, "it is to be renewed");
        assert_eq!(line.at(count(19_999_000)), None, "read before the anchor was made");
        assert_eq!(line.counts_until(count(19_999_000)), Some(0), "and taken for the anchor's own count");
        // An hour later, and after the counter has started anew.
        assert_eq!(line.next(count(3_600_000_000_000), fine_of_nanos(3_607_000_000_000)).time >> 11, 3_607_000_002);
        let anew = line.next(5, fine_of_nanos(8_000_000_000));
        assert_eq!((anew.time >> 11, anew.speed), (8_000_002, 0));
        // The same after a day, and ten seconds asleep: the counts that seem to have passed are no speed.
        let day = 86_400_000_000_000;
        let line = Line::through(count(day), fine_of_nanos(day), line.speed, fine_of_nanos(day));
        let anew = line.next(1_000_000, fine_of_nanos(day + 10_000_000_000));
        assert_eq!((anew.time >> 11, anew.speed), (86_410_000_002, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(5000) })]

        /// Through anchors at any time, by a kernel's clock that is corrected by up to 500 ppm either way, and read up to 100 ns late: the time
        /// never goes back, and is off by less than 50 µs.
        #[test]
        fn a_line_follows_the_kernels_clock(
            steps in prop::collection::vec((1..1000_u64, -500..=500_i64, 0..100_u64), 1..60),
        ) {
            let mut line = start(1_000_000_000);
            let (mut nanos, mut kernel, mut shown) = (0_u64, 1_000_000_000_i64, 0);
            for (step, ppm, late) in steps {
                // Some time passes, in steps of a tenth of a millisecond to a tenth of a second.
                let passes = step * 100_000;
                for _ in 0..4 {
                    nanos += passes / 4;
                    kernel += i64::try_from(passes / 4).unwrap() * (1_000_000 + ppm) / 1_000_000;
                    if let Some(micros) = line.at(count(nanos)) {
                        prop_assert!(micros >= shown, "{} after {}", micros, shown);
                        shown = micros;
                        let off = i64::try_from(micros).unwrap() - kernel / 1000;
                        prop_assert!(off.abs() <= 50, "off by {} µs", off);
                    }
                }
                let now = u64::try_from(kernel).unwrap();
                if line.is_due(now / 1000) {
                    line = line.next(count(nanos + late), fine_of_nanos(now));
                }
            }
        }
    }

    /// Four threads: the time of each goes on, and lies between two readings of the kernel's clock, but for what it
    /// may be off by.
    #[test]
    fn the_fast_clock_is_the_machines() {
        let end = MachineClock.now_micros() + 400_000;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut last = 0;
                    loop {
                        let before = MachineClock.now_micros();
                        let now = FastClock.now_micros();
                        let after = MachineClock.now_micros();
                        assert!(now >= last, "{now} after {last}");
                        assert!(now + 50 >= before && now <= after + 50, "{now} is not in {before} to {after}");
                        last = now;
                        if after > end {
                            return;
                        }
                    }
                });
            }
        });
    }
}
