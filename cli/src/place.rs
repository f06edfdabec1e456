//! Where named limits are.
//!
//! A folder that nobody else can write: in XDG_RUNTIME_DIR, which is one, or else a folder of the user's in /dev/shm,
//! where everybody can make folders. So it is looked at before it is used: it must be a folder, not a link to one,
//! and belong to the user alone. Who else makes a folder of this name can keep the user from it, but not fool him.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::exit::Failure;

/// The longest name, so that a temporary file's fits beside it.
const LONGEST: usize = 200;

/// Returns the path of a limit that is given by name, or by a path with a slash in it.
pub(crate) fn path_or_name(text: &str, folder: Option<&Path>) -> Result<PathBuf, Failure> {
    if text.contains('/') { Ok(text.into()) } else { named(text, folder) }
}

/// Returns the folder of named limits, and makes it if there is none.
pub(crate) fn folder(folder: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = folder.map_or_else(default_folder, Path::to_owned);
    ensure(&folder)?;
    Ok(folder)
}

/// Returns the path of a named limit, and makes the folder if there is none.
pub(crate) fn named(name: &str, dir: Option<&Path>) -> Result<PathBuf, Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > LONGEST || name.starts_with('.') || !name.chars().all(fits) {
        return Err(Failure::usage(format!(
            "{name:?} is not a name: use up to {LONGEST} letters, digits and . _ -, and no . at the start"
        )));
    }
    Ok(folder(dir)?.join(name))
}

fn default_folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(runtime) if runtime.is_absolute() => runtime.join("tollgate"),
        _ => PathBuf::from(format!("/dev/shm/tollgate-{}", geteuid().as_raw())),
    }
}

/// Makes the folder, for this user alone, unless it is there; then checks whose it is.
fn ensure(folder: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::io(&format!("using the folder {}", folder.display()), &error);
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let metadata = folder.symlink_metadata().map_err(failed)?;
    let (owner, own, mode) = (metadata.uid(), geteuid().as_raw(), metadata.mode() & 0o7777);
    let flaw = if !metadata.is_dir() {
        "it is not a folder".to_owned()
    } else if owner != own && owner != 0 {
        format!("it belongs to user {owner}, not to user {own}")
    } else if mode & 0o002 != 0 {
        format!("everybody can write to it (mode {mode:04o})")
    } else {
        return Ok(());
    };
    Err(Failure::permission(format!(
        "{}: {flaw}; remove it, or name another folder with --dir or TOLLGATE_DIR",
        folder.display()
    )))
}
