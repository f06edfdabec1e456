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
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, fallocate, fchmod, fstat, fstatfs, linkat};
use rustix::io::Errno;

use crate::error::FileError;
use crate::layout::{LENGTH, Page, check_header};

/// How the names of unfinished files begin, where they need names.
const LITTER: &str = ".tollgate-";
/// How old an unfinished file must be to be a dead creator's: nobody takes as long.
const DEAD: Duration = Duration::from_secs(60);

/// Publishes a file with this content and mode at `path`.
pub(crate) fn create(path: &Path, page: &Page, mode: u32) -> Result<File, FileError> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder(path), flags, Mode::RUSR | Mode::WUSR) {
        Ok(unnamed) => {
            let file = File::from(unnamed);
            fill(&file, page, mode).map_err(|error| failed(path, error))?;
            // The link's name in /proc is how an unprivileged process names a descriptor to linkat(2).
            let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
            linkat(CWD, descriptor, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(|error| failed(path, error))?;
            Ok(file)
        }
        // Not on this file system, or not on this kernel.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => create_named(path, page, mode),
        Err(error) => Err(failed(path, error)),
    }
}

/// Builds the file under a random name first, and removes what dead creators have left.
fn create_named(path: &Path, page: &Page, mode: u32) -> Result<File, FileError> {
    remove_litter(folder(path));
    let named =
        tempfile::Builder::new().prefix(LITTER).tempfile_in(folder(path)).map_err(|error| failed(path, error))?;
    fill(named.as_file(), page, mode).map_err(|error| failed(path, error))?;
    named.persist_noclobber(path).map_err(|error| failed(path, error.error))
}

/// Removes unfinished files of dead creators. What can't be removed, by whatever cause, stays.
fn remove_litter(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(LITTER);
        #[allow(clippy::disallowed_methods, reason = "files' times are the system clock's")]
        let age = || SystemTime::now().duration_since(entry.metadata().ok()?.modified().ok()?).ok();
        if named && age().is_some_and(|age| age > DEAD) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Allocates the space and writes the content.
fn fill(file: &File, page: &Page, mode: u32) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, LENGTH as u64) {
        // Writing the whole page allocates it too, on file systems that don't have the call.
        Ok(()) | Err(Errno::OPNOTSUPP) => {}
        Err(error) => return Err(error.into()),
    }
    file.write_all_at(page, 0)?;
    // Whatever the umask.
    fchmod(file, Mode::from_raw_mode(mode))?;
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

/// A file that was opened and checked.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    /// Whether it may be written.
    pub(crate) writable: bool,
}

/// Opens the file at `path`, for reading alone if it may not be written, and checks all of it that never changes, on
/// a private copy. Creates nothing, follows no symbolic link, and never blocks.
pub(crate) fn open(path: &Path, owners: &[u32]) -> Result<Opened, FileError> {
    let (file, writable) = match open_with(path, OFlags::RDWR) {
        Err(Errno::ACCESS | Errno::ROFS | Errno::PERM) => (open_with(path, OFlags::RDONLY), false),
        outcome => (outcome, true),
    };
    let not_a_file = |found| FileError::NotAFile { path: path.to_owned(), found };
    let file = match file {
        Ok(file) => file,
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
            FileType::Directory => "a directory",
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
    if let Some(kind) = fstatfs(&file).ok().and_then(|system| remote(system.f_type)) {
        return Err(FileError::Remote { path: path.to_owned(), kind });
    }
    let mut page = [0; LENGTH];
    file.read_exact_at(&mut page, 0).map_err(|error| match error.kind() {
        // As the kernel's own files are, under /sys.
        io::ErrorKind::UnexpectedEof => {
            FileError::NotALimiter { path: path.to_owned(), found: "it ends before its length".to_owned() }
        }
        _ => reading(error),
    })?;
    check_header(&page).map_err(|flaw| FileError::flaw(path, flaw))?;
    // Who may only read can't be harmed by who may write.
    if writable {
        check_owner(path, status.st_uid, status.st_mode & 0o7777, owners)?;
    }
    Ok(Opened { file, writable })
}

fn open_with(path: &Path, access: OFlags) -> Result<File, Errno> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map(File::from)
}

/// Opens the file at `path` once more, for writing, if it is still the same.
pub(crate) fn open_again(path: &Path, identity: Identity) -> Result<File, FileError> {
    let gone = || FileError::Gone { path: path.to_owned() };
    let file = match open_with(path, OFlags::RDWR) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR) => return Err(gone()),
        Err(error) => return Err(FileError::io("opening", path, error)),
    };
    let metadata = file.metadata().map_err(|error| FileError::io("reading", path, error))?;
    if Identity::of(&metadata) == identity { Ok(file) } else { Err(gone()) }
}

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(metadata: &std::fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Refuses files that strangers could change.
fn check_owner(path: &Path, owner: u32, mode: u32, allowed: &[u32]) -> Result<(), FileError> {
    let path = || path.to_owned();
    let own = rustix::process::geteuid().as_raw();
    // Root can change any file as it is.
    if owner != own && owner != 0 && !allowed.contains(&owner) {
        return Err(FileError::OtherOwner { path: path(), found: owner, expected: own });
    }
    if mode & 0o002 != 0 {
        return Err(FileError::WorldWritable { path: path(), mode });
    }
    Ok(())
}

/// Refuses modes with which [`open`] would refuse the file.
pub(crate) fn check_mode(mode: u32) -> Result<(), FileError> {
    let fits = mode & !0o777 == 0 && mode & 0o600 == 0o600 && mode & 0o002 == 0;
    if fits { Ok(()) } else { Err(FileError::BadMode { mode }) }
}

/// Names the file systems (statfs(2)) whose files other machines share.
fn remote(kind: rustix::fs::FsWord) -> Option<&'static str> {
    match kind {
        0x6969 => Some("NFS"),
        0xff53_4d42 | 0x517b | 0xfe53_4d42 => Some("a Windows share"),
        0x0102_1997 => Some("9p"),
        0x00c3_6400 => Some("Ceph"),
        0x5346_414f => Some("AFS"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Create = fn(&Path, &Page, u32) -> Result<File, FileError>;
    const WAYS: [Create; 2] = [create, create_named];

    #[test]
    fn a_file_is_whole_and_private_from_the_start() {
        for create in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("limit");
            create(&path, &[7; LENGTH], 0o600).unwrap();
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
            let error = create(&path, &[7; LENGTH], 0o600).unwrap_err();
            assert!(matches!(error, FileError::AlreadyExists { .. }), "{error}");
            assert_eq!(std::fs::read(&path).unwrap(), b"mine");

            // A dangling link is something too, and is not followed.
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(folder.path().join("victim"), &link).unwrap();
            let error = create(&link, &[7; LENGTH], 0o600).unwrap_err();
            assert!(matches!(error, FileError::AlreadyExists { .. }), "{error}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        for create in WAYS {
            let error = create(Path::new("/no/such/folder/limit"), &[7; LENGTH], 0o600).unwrap_err();
            assert_eq!(error.to_string(), "creating /no/such/folder/limit");
        }
    }

    #[test]
    fn the_litter_of_dead_creators_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let age = |name: &str, seconds| {
            let file = File::create(folder.path().join(name)).unwrap();
            #[allow(clippy::disallowed_methods, reason = "files' times are the system clock's")]
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        };
        age(".tollgate-dead", 100);
        age(".tollgate-alive", 10);
        age("mine", 1000);
        create_named(&folder.path().join("limit"), &[7; LENGTH], 0o600).unwrap();
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".tollgate-alive", "limit", "mine"]);
    }

    #[test]
    fn a_mode_is_whatever_the_umask() {
        for create in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("limit");
            create(&path, &[7; LENGTH], 0o664).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o664);
        }
        for mode in [0o600, 0o660, 0o664, 0o640] {
            assert!(check_mode(mode).is_ok());
        }
        for mode in [0o666, 0o602, 0o400, 0o060, 0, 0o4600, 0o10600] {
            assert!(check_mode(mode).is_err(), "{mode:o}");
        }
    }

    #[test]
    fn owners_are_checked() {
        let own = rustix::process::geteuid().as_raw();
        let check = |owner, mode, allowed: &[u32]| check_owner(Path::new("/f"), owner, mode, allowed);
        assert!(check(own, 0o600, &[]).is_ok());
        assert!(check(0, 0o600, &[]).is_ok());
        assert!(matches!(check(own + 1, 0o660, &[]), Err(FileError::OtherOwner { .. })));
        assert!(check(own + 1, 0o660, &[own + 1]).is_ok());
        assert!(matches!(check(own, 0o606, &[]), Err(FileError::WorldWritable { mode: 0o606, .. })));
    }

    #[test]
    fn a_name_without_a_folder_is_in_this_one() {
        assert_eq!(folder(Path::new("limit")), Path::new("."));
        assert_eq!(folder(Path::new("a/limit")), Path::new("a"));
        assert_eq!(folder(Path::new("/limit")), Path::new("/"));
    }
}
