//! The life of a limiter's file: initialise, then publish; check, then use.
//!
//! A file appears under its name only when it is complete. It is built without a name (O_TMPFILE of open(2)), its
//! space is really allocated (fallocate(2)), so that a full disk is an error here and not a signal later, and it is
//! linked into place without replacing anything (linkat(2)). Of several creators one wins, and the others are told. A
//! creator that dies leaves nothing behind. Where the file system has no O_TMPFILE, the file is built under a random
//! name beside its own.
//!
//! There is no lock anywhere, so nobody can hold anyone up.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, fallocate, fstat, linkat};
use rustix::io::Errno;

use crate::error::FileError;
use crate::layout::{Header, LENGTH, Page};

const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Publishes a file with this content, mode 0600, at `path`.
pub(crate) fn create(path: &Path, page: &Page) -> Result<File, FileError> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder(path), flags, OWNER_ONLY) {
        Ok(unnamed) => {
            let file = File::from(unnamed);
            fill(&file, page).map_err(|error| failed(path, error))?;
            // The link's name in /proc is how an unprivileged process names a descriptor to linkat(2).
            let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
            linkat(CWD, descriptor, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(|error| failed(path, error))?;
            Ok(file)
        }
        // Not on this file system, or not on this kernel.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => create_named(path, page),
        Err(error) => Err(failed(path, error)),
    }
}

/// Builds the file under a random name first.
fn create_named(path: &Path, page: &Page) -> Result<File, FileError> {
    // Mode 0600 by default.
    let named =
        tempfile::Builder::new().prefix(".tollgate-").tempfile_in(folder(path)).map_err(|error| failed(path, error))?;
    fill(named.as_file(), page).map_err(|error| failed(path, error))?;
    named.persist_noclobber(path).map_err(|error| failed(path, error.error))
}

/// Allocates the space and writes the content.
fn fill(file: &File, page: &Page) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, LENGTH as u64) {
        // Writing the whole page allocates it too, on file systems that don't have the call.
        Ok(()) | Err(Errno::OPNOTSUPP) => {}
        Err(error) => return Err(error.into()),
    }
    file.write_all_at(page, 0)?;
    // So that a power cut does not leave the name without the content.
    file.sync_all()
}

fn failed(path: &Path, error: impl Into<io::Error>) -> FileError {
    let error = error.into();
    match error.kind() {
        io::ErrorKind::AlreadyExists => FileError::AlreadyExists { path: path.to_owned() },
        _ => FileError::io("creating", path, error),
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Opens the file at `path` and checks all of it, on a private copy. Creates nothing, follows no symbolic link, and
/// never blocks.
pub(crate) fn open(path: &Path) -> Result<(File, Header), FileError> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let not_a_file = |found| FileError::NotAFile { path: path.to_owned(), found };
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Err(FileError::NotFound { path: path.to_owned() }),
        Err(Errno::LOOP) => return Err(not_a_file("a symbolic link")),
        Err(Errno::ISDIR) => return Err(not_a_file("a directory")),
        Err(Errno::NXIO) => return Err(not_a_file("a socket or a device")),
        Err(error) => return Err(FileError::io("opening", path, error)),
    };
    let reading = |error: io::Error| FileError::io("reading", path, error);
    let status = fstat(&file).map_err(|error| reading(error.into()))?;
    let kind = FileType::from_raw_mode(status.st_mode);
    if kind != FileType::RegularFile {
        return Err(not_a_file(match kind {
            FileType::Fifo => "a named pipe",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            _ => "something else",
        }));
    }
    let length = status.st_size;
    if usize::try_from(length) != Ok(LENGTH) {
        let found = format!("it has {length} bytes, not {LENGTH}");
        return Err(FileError::NotALimiter { path: path.to_owned(), found });
    }
    let mut page = [0; LENGTH];
    file.read_exact_at(&mut page, 0).map_err(reading)?;
    let header = Header::read(&page, path)?;
    Ok((file, header))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    type Create = fn(&Path, &Page) -> Result<File, FileError>;
    const WAYS: [Create; 2] = [create, create_named];

    #[test]
    fn a_file_is_whole_and_private_from_the_start() {
        for create in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("limit");
            create(&path, &[7; LENGTH]).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), [7; LENGTH]);
            let metadata = std::fs::metadata(&path).unwrap();
            assert_eq!(metadata.mode() & 0o7777, 0o600);
            assert!(metadata.blocks() * 512 >= LENGTH as u64, "the space is allocated");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        }
    }

    #[test]
    fn nothing_is_replaced() {
        for create in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("limit");
            std::fs::write(&path, "mine").unwrap();
            let error = create(&path, &[7; LENGTH]).unwrap_err();
            assert!(matches!(error, FileError::AlreadyExists { .. }), "{error}");
            assert_eq!(std::fs::read(&path).unwrap(), b"mine");

            // A dangling link is something too, and is not followed.
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(folder.path().join("victim"), &link).unwrap();
            let error = create(&link, &[7; LENGTH]).unwrap_err();
            assert!(matches!(error, FileError::AlreadyExists { .. }), "{error}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        for create in WAYS {
            let error = create(Path::new("/no/such/folder/limit"), &[7; LENGTH]).unwrap_err();
            assert_eq!(error.to_string(), "creating /no/such/folder/limit");
        }
    }

    #[test]
    fn a_name_without_a_folder_is_in_this_one() {
        assert_eq!(folder(Path::new("limit")), Path::new("."));
        assert_eq!(folder(Path::new("a/limit")), Path::new("a"));
        assert_eq!(folder(Path::new("/limit")), Path::new("/"));
    }
}
