//! Linux: files without a name, and a clock that counts the time asleep.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FallocateFlags, MemfdFlags, Mode, OFlags, fallocate, fstatfs, linkat, memfd_create};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::unix;
use crate::error::FileError;

/// Opens a file without a name; `None` if this kernel or file system has none.
pub(crate) fn open_unnamed(folder: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives a file without a name this one, if nothing has it.
pub(crate) fn link(file: &File, path: &Path) -> io::Result<()> {
    // The link's name in /proc is how an unprivileged process names a descriptor to linkat(2).
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, descriptor, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Allocates the space of a file, so that a full disk says so now.
pub(crate) fn allocate(file: &File, length: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, length) {
        // Writing all of it allocates it too, on file systems that don't have the call.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Names the file systems (statfs(2)) whose files other machines share.
pub(crate) fn remote(file: &File) -> Option<&'static str> {
    // Of 32 bits, in a field that is signed, and on some machines no larger.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the bits count")]
    match fstatfs(file).ok()?.f_type as u32 {
        0x6969 => Some("NFS"),
        0xff53_4d42 | 0x517b | 0xfe53_4d42 => Some("a Windows share"),
        0x0102_1997 => Some("9p"),
        0x00c3_6400 => Some("Ceph"),
        0x5346_414f => Some("AFS"),
        _ => None,
    }
}

/// `CLOCK_BOOTTIME` of clock_gettime(2).
#[inline]
pub(crate) fn now_micros() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    // Never negative: the clock starts at 0, and the offset of a time namespace can't take it below.
    let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    seconds.saturating_mul(1_000_000).saturating_add(nanos / 1000)
}

/// The same, in nanoseconds: 584 years of them.
pub(crate) fn now_nanos() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.unsigned_abs())
}

/// What the kernel keeps its time by.
pub(crate) fn kernel_clock() -> Option<String> {
    let clock = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource").ok()?;
    Some(clock.trim().to_owned())
}

/// A file that has no name (memfd_create(2)).
pub(crate) fn file_in_memory() -> io::Result<File> {
    Ok(File::from(memfd_create("tollgate", MemfdFlags::CLOEXEC)?))
}

/// The namespaces in which process ids and the times of their starts mean something (pid_namespaces(7), time_namespaces(7)); `None`
/// if that can't be known.
pub(crate) fn pid_space() -> Option<u32> {
    // Whose /proc is of another namespace would take others for itself.
    if std::fs::read_link("/proc/self").ok()?.to_str()?.parse() != Ok(std::process::id()) {
        return None;
    }
    let inode = |path| std::fs::metadata(path).ok().map(|namespace| namespace.ino());
    let both = [inode("/proc/self/ns/pid")?, inode("/proc/self/ns/time").unwrap_or(0)];
    Some(crc32fast::hash(&both.map(u64::to_ne_bytes).concat()))
}

/// When a process was started, in clock ticks since the machine was: field 22 of proc_pid_stat(5). `None` if it has ended, or
/// may not be looked at.
pub(crate) fn started(process: u32) -> Option<u64> {
    parse_started(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn parse_started(stat: &str) -> Option<u64> {
    fields(stat)?.nth(22 - 3)?.parse().ok()
}

/// The fields of proc_pid_stat(5) from the third one, the state, on.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    // The name of the program is in parentheses, and may have any in it.
    Some(stat.rsplit_once(')')?.1.split_whitespace())
}

/// Whether there is a process of this id that has not ended: dead ones that nobody has waited for have.
pub(crate) fn exists(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    !stat.is_ok_and(|stat| has_ended(&stat)) && unix::exists(process)
}

fn has_ended(stat: &str) -> bool {
    let Some(mut fields) = fields(stat) else { return false };
    let (state, threads) = (fields.next(), fields.nth(20 - 4));
    // As long as it has other threads, only its first one has ended.
    matches!(state, Some("Z" | "X")) && threads.is_some_and(|threads| matches!(threads, "0" | "1"))
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const OFFSETS: &str = "/proc/self/timens_offsets";
/// The namespace of this process, and the one of its children, which the offsets describe.
const NAMESPACES: [&str; 2] = ["/proc/self/ns/time", "/proc/self/ns/time_for_children"];

/// The identity of the machine's start (random(4)).
pub(crate) fn boot_id() -> Result<String, FileError> {
    std::fs::read_to_string(BOOT_ID)
        .map_err(|source| FileError::io("reading the machine's boot id from", Path::new(BOOT_ID), source))
}

/// What this process's time namespace (time_namespaces(7)) adds to the machine's clock, in microseconds, modulo 2^64.
pub(crate) fn namespace() -> Result<u64, FileError> {
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
    fn a_process_was_started_once() {
        let own = std::process::id();
        assert!(exists(own));
        assert!(started(own).is_some_and(|started| started > 0));
        assert_eq!(started(own), started(own));
        assert!(!exists(u32::MAX) && started(u32::MAX).is_none());
        let stat = "12 (a ) b) S 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4567 1 2";
        assert_eq!(parse_started(stat), Some(4567));
        assert!(!has_ended(stat));
        for (state, threads, ended) in [("Z", 1, true), ("X", 0, true), ("Z", 2, false), ("S", 1, false)] {
            let stat = format!("12 (a ) b) {state} 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 {threads} 0 4567 1 2");
            assert_eq!(has_ended(&stat), ended, "{stat}");
        }
        for text in ["", ")", "1 (x) S 1"] {
            assert_eq!(parse_started(text), None);
        }
    }

    #[test]
    fn an_offset_is_seconds_and_nanoseconds() {
        assert_eq!(parse_offset("monotonic           0         0\nboottime            0         0\n"), Some(0));
        assert_eq!(parse_offset("boottime 864000 5000\n"), Some(864_000_000_005));
        assert_eq!(parse_offset("boottime -2 500000000\n"), Some((-1_500_000_i64).cast_unsigned()));
        for text in ["", "boottime", "boottime 1", "boottime x 0", "monotonic 0 0"] {
            assert_eq!(parse_offset(text), None);
        }
    }
}
