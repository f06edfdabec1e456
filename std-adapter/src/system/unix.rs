//! What Linux and macOS have in common: open(2), stat(2).

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::file::Owner;

/// Opens so that no symbolic link is followed, and nothing blocks or becomes this process's terminal.
pub(crate) fn careful(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
}

/// Says what something is that could not be opened because it is no file.
pub(crate) fn not_a_file(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::ELOOP => Some("a symbolic link"),
        libc::EISDIR => Some("a directory"),
        libc::ENXIO => Some("a socket or a device"),
        _ => None,
    }
}

/// Says what something is that is no regular file.
pub(crate) fn kind(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "something else"
    }
}

/// An opened file never is a link.
pub(crate) fn is_link(_: &Metadata) -> bool {
    false
}

pub(crate) fn owner(metadata: &Metadata) -> Option<Owner> {
    let own = rustix::process::geteuid().as_raw();
    Some(Owner { user: metadata.uid(), own, mode: metadata.mode() & 0o7777 })
}

pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Whether there is a process of this id (kill(2)).
pub(crate) fn exists(process: u32) -> bool {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    // Whatever else it says, there is one.
    id.is_some_and(|id| test_kill_process(id) != Err(Errno::SRCH))
}

/// Which file it is, whatever its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(&file.metadata()?))
    }

    /// Of what has a name; a symbolic link is what it is.
    pub(crate) fn named(path: &Path) -> io::Result<Self> {
        Ok(Self::from(&path.symlink_metadata()?))
    }

    fn from(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}
