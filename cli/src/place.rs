//! Where named limits are.
//!
//! A folder that nobody else can write: in XDG_RUNTIME_DIR, which is one, or else a folder of the user's in /dev/shm,
//! where everybody can make folders. So it is looked at before it is used: it must be a folder, not a link to one,
//! and belong to the user alone. Who else makes a folder of this name can keep the user from it, but not fool him.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::args::Where;
use crate::exit::Failure;

/// The longest name, so that a temporary file's fits beside it.
const LONGEST: usize = 200;

/// Returns the path of a limit that is given by name, or by a path with a slash in it.
pub(crate) fn path_or_name(text: &str, place: &Where) -> Result<PathBuf, Failure> {
    if text.contains('/') { Ok(text.into()) } else { named(text, place) }
}

/// Returns the path of a named limit, and makes the folder if there is none, for this user alone.
pub(crate) fn named(name: &str, place: &Where) -> Result<PathBuf, Failure> {
    let name = checked(name)?;
    let folder = path(place);
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(&folder, &error)),
        _ => Ok(self::folder(place)?.join(name)),
    }
}

/// Checks that a name is one.
pub(crate) fn checked(name: &str) -> Result<&str, Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > LONGEST || name.starts_with('.') || !name.chars().all(fits) {
        return Err(Failure::usage(format!(
            "{name:?} is not a name: use up to {LONGEST} letters, digits and . _ -, and no . at the start"
        )));
    }
    Ok(name)
}

/// Returns the folder of named limits, which must be there, and be safe.
pub(crate) fn folder(place: &Where) -> Result<PathBuf, Failure> {
    let folder = path(place);
    let metadata = folder.symlink_metadata().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::input(
            &folder.to_string_lossy(),
            &io::Error::new(
                error.kind(),
                "there is no such folder; `tollgate set --name` makes it with its first limit",
            ),
        ),
        _ => failed(&folder, &error),
    })?;
    let (owner, own, mode) = (metadata.uid(), geteuid().as_raw(), metadata.mode() & 0o7777);
    let flaw = if !metadata.is_dir() {
        "it is not a folder".to_owned()
    } else if owner != own && owner != 0 && !place.allow_owner.contains(&owner) {
        format!("it belongs to user {owner}, not to user {own}; give --allow-owner {owner}")
    } else if mode & 0o002 != 0 {
        format!("everybody can write to it (mode {mode:04o})")
    } else {
        return Ok(folder);
    };
    // Who else made the user's own is no friend.
    let remedy = if place.dir.is_some() { "name another folder" } else { "remove it, or name another folder" };
    Err(Failure::permission(format!("{}: {flaw}; or {remedy} with --dir or TOLLGATE_DIR", folder.display())))
}

fn failed(folder: &Path, error: &io::Error) -> Failure {
    Failure::input(&folder.to_string_lossy(), error)
}

fn path(place: &Where) -> PathBuf {
    place.dir.clone().unwrap_or_else(default_folder)
}

fn default_folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(runtime) if runtime.is_absolute() => runtime.join("tollgate"),
        _ => PathBuf::from(format!("/dev/shm/tollgate-{}", geteuid().as_raw())),
    }
}
