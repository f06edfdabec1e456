//! macOS and its like. Compiled for, and never run by those who wrote it.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use sysctl::Sysctl;

use crate::error::FileError;

/// There are no files without a name.
pub(crate) fn open_unnamed(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

pub(crate) fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Writing all of a file allocates its space.
pub(crate) fn allocate(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

/// Nobody looks.
pub(crate) fn remote(_: &File) -> Option<&'static str> {
    None
}

/// `CLOCK_MONOTONIC` of clock_gettime(3), which here counts the time asleep.
#[inline]
pub(crate) fn now_micros() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    seconds.saturating_mul(1_000_000).saturating_add(nanos / 1000)
}

/// A file that is removed when it is closed.
pub(crate) fn file_in_memory() -> io::Result<File> {
    tempfile::tempfile()
}

/// There is one.
pub(crate) fn pid_space() -> Option<u32> {
    Some(0)
}

/// Not known: a process id that is used again is taken for the process before.
pub(crate) fn started(_: u32) -> Option<u64> {
    Some(0)
}

pub(crate) use super::unix::exists;

const BOOT_ID: &str = "kern.bootsessionuuid";

/// The identity of the machine's start (sysctl(3)).
pub(crate) fn boot_id() -> Result<String, FileError> {
    sysctl::Ctl::new(BOOT_ID).and_then(|value| value.value_string()).map_err(|error| {
        FileError::io("reading the machine's boot id from", Path::new(BOOT_ID), io::Error::other(error))
    })
}

/// There are none.
pub(crate) fn namespace() -> Result<u64, FileError> {
    Ok(0)
}

/// The same, in nanoseconds: 584 years of them.
pub(crate) fn now_nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.unsigned_abs())
}

/// Nobody knows.
pub(crate) fn kernel_clock() -> Option<String> {
    None
}
