//! The log: lines of several sources, each within a quota of its own.

use core::cell::RefCell;

use critical_section::Mutex;
use tollgate_core::{Clock, CounterClock, KeyedBuckets, Quota, quota};

use crate::port;
use crate::timer::{self, COUNTER};

/// Each source may write three lines at once, and two a second.
const LINES: Quota = quota!(Quota::per_second(2), burst 3);

/// Who writes lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Source {
    Sensor,
    Radio,
    Power,
}

const SOURCES: usize = 3;

/// The timer's 24 bits, as a clock that does not turn over. Somebody has to read it at least each
/// [`max_gap`](tollgate_core::Counter::max_gap), 1.25 seconds: the main loop does. The timer's interrupt, which comes once in
/// a turn, would be too rare.
static CLOCK: CounterClock = CounterClock::new(COUNTER, timer::count);
static LOG: Mutex<RefCell<Log>> = Mutex::new(RefCell::new(Log::new()));

struct Log {
    sources: KeyedBuckets<Source, SOURCES>,
    /// Lines of each source that were left out since its last one.
    suppressed: [u32; SOURCES],
}

impl Log {
    const fn new() -> Self {
        Self { sources: KeyedBuckets::new(LINES), suppressed: [0; SOURCES] }
    }

    fn write(&mut self, now: u64, source: Source, line: &str) {
        let allowed = self.sources.try_acquire_at(now, &source, 1).is_ok();
        let Some(suppressed) = self.suppressed.get_mut(source as usize) else { return };
        if !allowed {
            *suppressed = suppressed.saturating_add(1);
            return;
        }
        if *suppressed > 0 {
            port::suppressed(source, *suppressed);
            *suppressed = 0;
        }
        port::line(source, line);
    }
}

/// Writes a line, unless its source has written too many. For the main program and for interrupts, which are masked until
/// the line is sent, so that lines don't mix: where the port is slow, put the line in a queue instead.
pub fn write(source: Source, line: &str) {
    critical_section::with(|section| {
        // Never borrowed twice: a critical section is not interrupted, and `write` does not call itself.
        if let Ok(mut log) = LOG.borrow(section).try_borrow_mut() {
            log.write(CLOCK.now_micros(), source, line);
        }
    });
}

/// The time, from an origin that is nobody's concern.
pub fn now_micros() -> u64 {
    CLOCK.now_micros()
}
