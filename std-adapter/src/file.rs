//! The life of a limiter's file: initialise, then publish; check, then use.
//!
//! A file appears under its name only when it is complete. It is built without a name (O_TMPFILE of open(2)), its
//! space is really allocated (fallocate(2)), so that a full disk is an error here and not a signal later, and it is
//! linked into place without replacing anything (linkat(2)). Of several creators one wins, and the others are told. A
//! creator that dies leaves nothing behind. Where the system or the file system has no O_TMPFILE, the file is built
//! under a random name beside its own.
//!
//! There is no lock anywhere, so nobody can hold anyone up.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::error::FileError;
use crate::layout::{LENGTH, PAGE, Page, check_header};
use crate::system;

/// How the names of unfinished files begin and end, where they need names: as nobody else's do.
const LITTER: [&str; 2] = [".tollgate-", ".unfinished"];
/// How old an unfinished file must be to be a dead creator's: nobody takes as long.
const DEAD: Duration = Duration::from_secs(60);

/// Publishes a file with this content and mode at `path`.
pub(crate) fn create(path: &Path, page: &Page, mode: u32) -> Result<File, FileError> {
    match system::open_unnamed(folder(path)) {
        Ok(Some(file)) => {
            check_local(path, &file)?;
            fill(&file, page, mode).map_err(|error| failed(path, error))?;
            system::link(&file, path).map_err(|error| failed(path, error))?;
            Ok(file)
        }
        Ok(None) => create_named(path, page, mode),
        Err(error) => Err(failed(path, error)),
    }
}

/// Builds the file under a random name first, and removes what dead creators have left.
fn create_named(path: &Path, page: &Page, mode: u32) -> Result<File, FileError> {
    remove_litter(folder(path));
    let [prefix, suffix] = LITTER;
    let named = tempfile::Builder::new().prefix(prefix).suffix(suffix).tempfile_in(folder(path));
    let named = named.map_err(|error| failed(path, error))?;
    check_local(path, named.as_file())?;
    fill(named.as_file(), page, mode).map_err(|error| failed(path, error))?;
    named.persist_noclobber(path).map_err(|error| failed(path, error.error))
}

/// Removes unfinished files of dead creators. What can't be removed, by whatever cause, stays.
fn remove_litter(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let [prefix, suffix] = LITTER;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        #[allow(clippy::disallowed_methods, reason = "files' times are the system clock's")]
        let age = || SystemTime::now().duration_since(entry.metadata().ok()?.modified().ok()?).ok();
        if name.starts_with(prefix) && name.ends_with(suffix) && age().is_some_and(|age| age > DEAD) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Allocates the space and writes the content.
fn fill(mut file: &File, page: &Page, mode: u32) -> io::Result<()> {
    system::allocate(file, LENGTH as u64)?;
    file.write_all(page)?;
    file.write_all(&[0; LENGTH - PAGE])?;
    // Whatever the umask.
    system::set_mode(file, mode)?;
    // So that a power cut does not leave the name without the content.
    file.sync_all()
}

/// Refuses file systems that machines share: atomics don't cross machines.
fn check_local(path: &Path, file: &File) -> Result<(), FileError> {
    match system::remote(file) {
        Some(kind) => Err(FileError::Remote { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

fn failed(path: &Path, error: io::Error) -> FileError {
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
    let not_a_file = |found| FileError::NotAFile { path: path.to_owned(), found };
    let not_a_limiter = |found| FileError::NotALimiter { path: path.to_owned(), found };
    let (file, writable) = match open_for(path, true) {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            (open_for(path, false), false)
        }
        outcome => (outcome, true),
    };
    let mut file = file.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FileError::NotFound { path: path.to_owned() },
        // What can't be opened at all says so by an error of its own.
        _ => system::not_a_file(&error).map_or_else(|| FileError::io("opening", path, error), not_a_file),
    })?;
    let reading = |error: io::Error| FileError::io("reading", path, error);
    let metadata = file.metadata().map_err(reading)?;
    if !metadata.is_file() || system::is_link(&metadata) {
        return Err(not_a_file(system::kind(&metadata)));
    }
    let length = || not_a_limiter(format!("it has {} bytes, not {LENGTH}", metadata.len()));
    if metadata.len() < PAGE as u64 {
        return Err(length());
    }
    check_local(path, &file)?;
    let mut page = [0; PAGE];
    file.read_exact(&mut page).map_err(|error| match error.kind() {
        // As the kernel's own files do, under /sys.
        io::ErrorKind::UnexpectedEof => not_a_limiter("it ends before its length".to_owned()),
        _ => reading(error),
    })?;
    // Another version has another length.
    check_header(&page).map_err(|flaw| FileError::flaw(path, flaw))?;
    if metadata.len() != LENGTH as u64 {
        return Err(length());
    }
    // Who may only read can't be harmed by who may write.
    if writable && let Some(owner) = system::owner(&metadata) {
        check_owner(path, owner, owners)?;
    }
    Ok(Opened { file, writable })
}

fn open_for(path: &Path, writing: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    system::careful(options.read(true).write(writing)).open(path)
}

/// Opens the file at `path` once more, for writing, if it is still the same.
pub(crate) fn open_again(path: &Path, identity: &Identity) -> Result<File, FileError> {
    let gone = || FileError::Gone { path: path.to_owned() };
    let file = open_for(path, true).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => gone(),
        _ if system::not_a_file(&error).is_some() => gone(),
        _ => FileError::io("opening", path, error),
    })?;
    let found = Identity::of(&file).map_err(|error| FileError::io("reading", path, error))?;
    if found == *identity { Ok(file) } else { Err(gone()) }
}

pub(crate) use system::Identity;

/// Who can change a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    /// The owner's user id, and this process's.
    pub(crate) user: u32,
    pub(crate) own: u32,
    /// The permission bits.
    pub(crate) mode: u32,
}

/// Refuses files that strangers could change.
fn check_owner(path: &Path, owner: Owner, allowed: &[u32]) -> Result<(), FileError> {
    let Owner { user, own, mode } = owner;
    // Root can change any file as it is.
    if user != own && user != 0 && !allowed.contains(&user) {
        return Err(FileError::OtherOwner { path: path.to_owned(), found: user, expected: own });
    }
    if mode & 0o002 != 0 {
        return Err(FileError::WorldWritable { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Refuses modes with which [`open`] would refuse the file.
pub(crate) fn check_mode(mode: u32) -> Result<(), FileError> {
    let fits = mode & !0o777 == 0 && mode & 0o600 == 0o600 && mode & 0o002 == 0;
    if fits { Ok(()) } else { Err(FileError::BadMode { mode }) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    type Create = fn(&Path, &Page, u32) -> Result<File, FileError>;
    const WAYS: [Create; 2] = [create, create_named];

    #[test]
    fn a_file_is_whole_and_private_from_the_start() {
        for create in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("limit");
            create(&path, &[7; PAGE], 0o600).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), [[7; PAGE].as_slice(), &[0; LENGTH - PAGE]].concat());
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
            let error = create(&path, &[7; PAGE], 0o600).unwrap_err();
            assert!(matches!(error, FileError::AlreadyExists { .. }), "{error}");
            assert_eq!(std::fs::read(&path).unwrap(), b"mine");

            // A dangling link is something too, and is not followed.
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(folder.path().join("victim"), &link).unwrap();
            let error = create(&link, &[7; PAGE], 0o600).unwrap_err();
            assert!(matches!(error, FileError::AlreadyExists { .. }), "{error}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        for create in WAYS {
            let error = create(Path::new("/no/such/folder/limit"), &[7; PAGE], 0o600).unwrap_err();
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
        age(".tollgate-dead.unfinished", 100);
        age(".tollgate-alive.unfinished", 10);
        age("mine", 1000);
        age(".tollgate-settings", 1000);
        create_named(&folder.path().join("limit"), &[7; PAGE], 0o600).unwrap();
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".tollgate-alive.unfinished", ".tollgate-settings", "limit", "mine"]);
    }

    #[test]
    fn a_mode_is_whatever_the_umask() {
        for create in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("limit");
            create(&path, &[7; PAGE], 0o664).unwrap();
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
        let check = |user, mode, allowed: &[u32]| check_owner(Path::new("/f"), Owner { user, own, mode }, allowed);
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
