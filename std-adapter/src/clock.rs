//! The clock that all processes of a machine share, and the time of a file, which outlasts a restart.
//!
//! The clock starts at 0 with each start of the machine. A file's time goes on: it is the clock plus an *offset*,
//! chosen by whoever opens the file first after a restart, so that the file's time is not before its last time stamp,
//! and less than 1024 µs after it. So the level is kept, whatever was there before the restart, and no stamp is in
//! the future.
//!
//! The offset and what it belongs to are one word, the *epoch*, so that it is changed by one exchange:
//!
//! ```text
//!  63                        21  20         0
//! +----------------------------+------------+
//! |   offset in 1024 µs, 43    | boot tag   |
//! +----------------------------+------------+
//! ```
//!
//! The tag is 21 bits of the machine's boot id. Should two starts have the same, one in two million, the stamps are
//! in the future until the machine has run for as long as before, and the file is refused.

use tollgate_core::Clock;

use crate::FastClock;
use crate::error::FileError;
use crate::system;

/// Microseconds since the machine started, time asleep included: `CLOCK_BOOTTIME` of clock_gettime(2).
///
/// All processes of a machine read the same value, except in another time namespace (time_namespaces(7)), for which a
/// [`SharedRateLimiter`](crate::SharedRateLimiter) makes up. It never goes back, whoever sets the date. One
/// reading costs what `CLOCK_MONOTONIC` costs. (On macOS it is `CLOCK_MONOTONIC`, on Windows
/// QueryInterruptTimePrecise.)
///
/// # Examples
///
/// ```
/// use tollgate::{Clock, MachineClock};
///
/// let before = MachineClock.now_micros();
/// assert!(before > 0);
/// assert!(MachineClock.now_micros() >= before);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineClock;

impl Clock for MachineClock {
    #[inline]
    fn now_micros(&self) -> u64 {
        system::now_micros()
    }
}

/// The time of a file: that of the machine, without the offset of this process's time namespace, with the file's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileClock {
    /// What is added to the machine's clock, modulo 2^64.
    offset: u64,
    /// Whether the machine's clock is read by the processor's counter.
    fast: bool,
}

impl FileClock {
    pub(crate) fn fast(self, fast: bool) -> Self {
        Self { fast, ..self }
    }
}

impl Clock for FileClock {
    #[inline]
    fn now_micros(&self) -> u64 {
        let now = if self.fast { FastClock.now_micros() } else { MachineClock.now_micros() };
        now.wrapping_add(self.offset)
    }
}

/// What makes this process's readings comparable to others': the start of the machine, and the time namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    boot: u32,
    /// What the time namespace adds to the machine's clock, in microseconds, modulo 2^64.
    namespace: u64,
}

impl Origin {
    /// Finds out this process's.
    pub(crate) fn of_this_process() -> Result<Self, FileError> {
        Ok(Self { boot: tag(&system::boot_id()?), namespace: system::namespace()? })
    }

    /// The epoch of a new file: its time is the machine's.
    pub(crate) fn first_epoch(self) -> u64 {
        self.boot.into()
    }

    /// The clock of a new file.
    pub(crate) fn clock_of_new(self) -> FileClock {
        FileClock { offset: 0_u64.wrapping_sub(self.namespace), fast: false }
    }

    /// The clock of a file with this epoch; `None` if that belongs to another start of the machine.
    pub(crate) fn clock(self, epoch: u64) -> Option<FileClock> {
        let offset = (epoch >> TAG_BITS).wrapping_mul(UNIT).wrapping_sub(self.namespace);
        (epoch & TAG == u64::from(self.boot)).then_some(FileClock { offset, fast: false })
    }

    /// The epoch in which the file's time goes on from its last time stamp.
    pub(crate) fn epoch_after(self, stamp: u64) -> u64 {
        let now = MachineClock.now_micros().wrapping_sub(self.namespace);
        let offset = stamp.saturating_sub(now).div_ceil(UNIT).min(u64::MAX >> TAG_BITS);
        offset << TAG_BITS | u64::from(self.boot)
    }
}

/// The unit of an epoch's offset, in microseconds.
const UNIT: u64 = 1024;
const TAG_BITS: u32 = 21;
const TAG: u64 = (1 << TAG_BITS) - 1;

/// Some bits of a boot id, never all zero.
fn tag(boot_id: &str) -> u32 {
    (crc32fast::hash(boot_id.trim().as_bytes()) >> (32 - TAG_BITS)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_time_is_the_machines() {
        let origin = Origin { boot: tag("one"), namespace: 0 };
        let (before, now) = (MachineClock.now_micros(), origin.clock(origin.first_epoch()).unwrap().now_micros());
        assert!((before..=MachineClock.now_micros()).contains(&now));
        // Ten days ahead in another namespace, the same.
        let ahead = Origin { namespace: 864_000_000_000, ..origin };
        let clock = ahead.clock(origin.first_epoch()).unwrap();
        assert_eq!(clock.now_micros().wrapping_sub(MachineClock.now_micros()).cast_signed() / 1_000_000, -864_000);
    }

    #[test]
    fn the_files_time_goes_on_after_a_restart() {
        let (old, new) = (Origin { boot: tag("one"), namespace: 0 }, Origin { boot: tag("two"), namespace: 0 });
        assert!(new.clock(old.first_epoch()).is_none());
        // Stamps from long before the machine's clock, from about now, and from far ahead.
        let now = MachineClock.now_micros();
        for stamp in [0, now, now + 1, now + 86_400_000_000, 1 << 52] {
            let epoch = new.epoch_after(stamp);
            let read = new.clock(epoch).unwrap().now_micros();
            assert!(read >= stamp, "{read} is before {stamp}");
            let latest = stamp.max(MachineClock.now_micros()) + 1024;
            assert!(read < latest + (MachineClock.now_micros() - now), "{read} is too late for {stamp}");
            assert!(old.clock(epoch).is_none());
        }
    }

    #[test]
    fn this_machine_has_an_origin() {
        let (one, two) = (Origin::of_this_process().unwrap(), Origin::of_this_process().unwrap());
        assert_eq!(one.first_epoch(), two.first_epoch());
        assert_ne!(one.first_epoch(), 0);
    }
}
