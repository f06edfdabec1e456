//! The clock that all processes of a machine share.

use std::io;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use tollgate_core::Clock;

use crate::error::FileError;

/// Microseconds since the machine started, time asleep included: `CLOCK_BOOTTIME` of clock_gettime(2).
///
/// All processes of a machine read the same value, except in another time namespace (time_namespaces(7)), where a
/// [`SharedRateLimiter`](crate::SharedRateLimiter) can't be opened. It never goes back, whoever sets the date. One
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

/// What makes time stamps comparable: the start of the machine that they count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BootId(pub(crate) [u8; 16]);

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const OFFSETS: &str = "/proc/self/timens_offsets";

impl BootId {
    /// Reads the identity of the running machine's start (random(4)).
    pub(crate) fn of_this_boot() -> Result<Self, FileError> {
        let text = std::fs::read_to_string(BOOT_ID)
            .map_err(|source| FileError::io("reading the machine's boot id from", Path::new(BOOT_ID), source))?;
        Self::parse(&text).ok_or_else(|| {
            let source = io::Error::new(io::ErrorKind::InvalidData, "not a boot id");
            FileError::io("reading the machine's boot id from", Path::new(BOOT_ID), source)
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
        (digits.len() == 32).then_some(())?;
        u128::from_str_radix(&digits, 16).ok().map(|id| Self(id.to_be_bytes()))
    }
}

impl std::fmt::Display for BootId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Refuses a time namespace whose clock differs from the machine's.
pub(crate) fn check_time_namespace() -> Result<(), FileError> {
    let offsets = match std::fs::read_to_string(OFFSETS) {
        Ok(offsets) => offsets,
        // A kernel without time namespaces.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(FileError::io("reading the time namespace from", Path::new(OFFSETS), source)),
    };
    match offsets.lines().find_map(|line| line.strip_prefix("boottime")) {
        Some(offset) if offset.split_whitespace().all(|part| part == "0") => Ok(()),
        Some(offset) => Err(FileError::TimeNamespace { offset: offset.trim().to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_id_is_a_uuid() {
        let id = BootId::parse("0f3a7f9c-1d2e-4b5a-8c7d-000000000001\n").unwrap();
        assert_eq!(id.to_string(), "0f3a7f9c1d2e4b5a8c7d000000000001");
        assert_eq!(BootId::parse(""), None);
        assert_eq!(BootId::parse("0f3a7f9c-1d2e-4b5a-8c7d-00000000000g"), None);
    }

    #[test]
    fn this_machine_has_one() {
        assert_eq!(BootId::of_this_boot().unwrap(), BootId::of_this_boot().unwrap());
    }
}
