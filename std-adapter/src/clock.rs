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

use std::io;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use tollgate_core::Clock;

use crate::error::FileError;

/// Microseconds since the machine started, time asleep included: `CLOCK_BOOTTIME` of clock_gettime(2).
///
/// All processes of a machine read the same value, except in another time namespace (time_namespaces(7)), for which a
/// [`SharedRateLimiter`](crate::SharedRateLimiter) makes up. It never goes back, whoever sets the date. One
/// reading costs what `CLOCK_MONOTONIC` costs.
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
        let time = clock_gettime(ClockId::Boottime);
        // Never negative: the clock starts at 0, and the offset of a time namespace can't take it below.
        let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
        seconds.saturating_mul(1_000_000).saturating_add(nanos / 1000)
    }
}

/// The time of a file: that of the machine, without the offset of this process's time namespace, with the file's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileClock {
    /// What is added to the machine's clock, modulo 2^64.
    offset: u64,
}

impl Clock for FileClock {
    #[inline]
    fn now_micros(&self) -> u64 {
        MachineClock.now_micros().wrapping_add(self.offset)
    }
}

/// What makes this process's readings comparable to others': the start of the machine, and the time namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    boot: u32,
    /// What the time namespace adds to the machine's clock, in microseconds, modulo 2^64.
    namespace: u64,
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const OFFSETS: &str = "/proc/self/timens_offsets";
/// The namespace of this process, and the one of its children, which the offsets describe.
const NAMESPACES: [&str; 2] = ["/proc/self/ns/time", "/proc/self/ns/time_for_children"];

impl Origin {
    /// Finds out this process's.
    pub(crate) fn of_this_process() -> Result<Self, FileError> {
        let text = std::fs::read_to_string(BOOT_ID)
            .map_err(|source| FileError::io("reading the machine's boot id from", Path::new(BOOT_ID), source))?;
        Ok(Self { boot: tag(&text), namespace: namespace()? })
    }

    /// The epoch of a new file: its time is the machine's.
    pub(crate) fn first_epoch(self) -> u64 {
        self.boot.into()
    }

    /// The clock of a new file.
    pub(crate) fn clock_of_new(self) -> FileClock {
        FileClock { offset: 0_u64.wrapping_sub(self.namespace) }
    }

    /// The clock of a file with this epoch; `None` if that belongs to another start of the machine.
    pub(crate) fn clock(self, epoch: u64) -> Option<FileClock> {
        let offset = (epoch >> TAG_BITS).wrapping_mul(UNIT).wrapping_sub(self.namespace);
        (epoch & TAG == u64::from(self.boot)).then_some(FileClock { offset })
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

/// Reads what this process's time namespace adds to the machine's clock.
fn namespace() -> Result<u64, FileError> {
    let reading = |path| move |source| FileError::io("reading the time namespace from", Path::new(path), source);
    let offsets = match std::fs::read_to_string(OFFSETS) {
        Ok(offsets) => offsets,
        // A kernel without time namespaces.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(reading(OFFSETS)(error)),
    };
    let offset = parse_offset(&offsets).ok_or_else(|| {
        let source = io::Error::new(io::ErrorKind::InvalidData, "no offset of the clock boottime");
        reading(OFFSETS)(source)
    })?;
    let [own, of_children] = NAMESPACES.map(std::fs::read_link);
    // The same for all but a process that has unshared its time and not yet started a program.
    if own.map_err(reading(NAMESPACES[0]))? != of_children.map_err(reading(NAMESPACES[1]))? {
        return Err(FileError::TimeNamespace);
    }
    Ok(offset)
}

/// Reads the line of the boottime clock: whole seconds, and nanoseconds to add.
fn parse_offset(offsets: &str) -> Option<u64> {
    let line = offsets.lines().find_map(|line| line.strip_prefix("boottime"))?;
    let mut fields = line.split_whitespace().map(str::parse::<i64>);
    let (seconds, nanos) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(seconds.wrapping_mul(1_000_000).wrapping_add(nanos / 1000).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_seconds_and_nanoseconds() {
        assert_eq!(parse_offset("monotonic           0         0\nboottime            0         0\n"), Some(0));
        assert_eq!(parse_offset("boottime 864000 5000\n"), Some(864_000_000_005));
        assert_eq!(parse_offset("boottime -2 500000000\n"), Some((-1_500_000_i64).cast_unsigned()));
        for text in ["", "boottime", "boottime 1", "boottime x 0", "monotonic 0 0"] {
            assert_eq!(parse_offset(text), None);
        }
    }

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
