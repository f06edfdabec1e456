//! Windows. Compiled for, and never run by those who wrote it.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use windows_sys::Win32::Storage::FileSystem::{FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_OPEN_REPARSE_POINT};
use windows_sys::Win32::System::WindowsProgramming::QueryInterruptTimePrecise;

use crate::error::FileError;
use crate::file::Owner;

/// Opens a link itself, and not what it leads to.
pub(crate) fn careful(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
}

pub(crate) fn not_a_file(_: &io::Error) -> Option<&'static str> {
    None
}

pub(crate) fn kind(metadata: &Metadata) -> &'static str {
    if is_link(metadata) { "a link" } else { "a folder" }
}

pub(crate) fn is_link(metadata: &Metadata) -> bool {
    metadata.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0
}

/// Who may change a file is what its access control list says; nobody looks.
pub(crate) fn owner(_: &Metadata) -> Option<Owner> {
    None
}

/// The folder's access control list holds.
pub(crate) fn set_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

/// Which file it is, whatever its name. Keeps it open.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Identity(same_file::Handle);

impl Identity {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        same_file::Handle::from_file(file.try_clone()?).map(Self)
    }

    pub(crate) fn named(path: &Path) -> io::Result<Self> {
        same_file::Handle::from_path(path).map(Self)
    }
}

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

/// Not known either: a seat is free when its process gives it back.
pub(crate) fn exists(_: u32) -> bool {
    true
}

/// QueryInterruptTimePrecise: since the machine started, time asleep included, in units of 100 ns.
#[inline]
pub(crate) fn now_micros() -> u64 {
    let mut time = 0;
    // SAFETY: it asks for a valid pointer to write to: `time` is a local variable.
    unsafe { QueryInterruptTimePrecise(&raw mut time) };
    time / 10
}

/// There is none that all may read. The time of the start is one, but for what the system's clock is corrected by: to
/// the quarter of an hour, it is mostly the same. Where it is not, the file's time goes on from its last stamp, which
/// loses and mints nothing.
pub(crate) fn boot_id() -> Result<String, FileError> {
    #[allow(clippy::disallowed_methods, reason = "it is the system clock's time of the start")]
    let now = std::time::SystemTime::now();
    let start = now.checked_sub(std::time::Duration::from_micros(now_micros()));
    let since = start.and_then(|start| start.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    Ok((since.as_secs() / 900).to_string())
}

/// There are none.
pub(crate) fn namespace() -> Result<u64, FileError> {
    Ok(0)
}

/// The same, in nanoseconds.
pub(crate) fn now_nanos() -> u64 {
    now_micros().saturating_mul(1000)
}

/// Nobody knows.
pub(crate) fn kernel_clock() -> Option<String> {
    None
}
