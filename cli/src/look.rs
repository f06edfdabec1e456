//! Looking at several limits.

use std::path::PathBuf;

use crate::args::Limits;
use crate::exit::{Failure, NOT_IN_TIME, refused};
use crate::limit::open_to_look;
use crate::place::{checked, folder};
use crate::seen::Seen;

/// A look at one limit.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) path: PathBuf,
    pub(crate) seen: Result<Seen, Failure>,
}

/// Looks at each of the limits, by the file that has its path now.
pub(crate) fn look(limits: &Limits) -> Result<Vec<Look>, Failure> {
    let look = |path: PathBuf| {
        let limiter = open_to_look(&path, &limits.place);
        let seen = limiter
            .and_then(|limiter| Seen::now(&limiter).map_err(|error| refused(limiter.path(), &error, NOT_IN_TIME)));
        Look { path, seen }
    };
    Ok(paths(limits)?.into_iter().map(look).collect())
}

/// Looks at them; if one that is named can't be looked at, fails as it does. In a folder there may be anything.
pub(crate) fn look_at_all(limits: &Limits) -> Result<Vec<Look>, Failure> {
    let mut looks = look(limits)?;
    let failed = looks.iter().position(|look| look.seen.is_err()).filter(|_| are_named(limits));
    match failed.map(|at| looks.swap_remove(at).seen) {
        Some(Err(failure)) => Err(failure),
        _ => Ok(looks),
    }
}

fn are_named(limits: &Limits) -> bool {
    !limits.file.is_empty() || !limits.name.is_empty()
}

fn paths(limits: &Limits) -> Result<Vec<PathBuf>, Failure> {
    // Absolute, so that each limit has one, and is there once.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let mut paths = Vec::new();
    if are_named(limits) {
        for name in &limits.name {
            paths.push(absolute(folder(&limits.place)?.join(checked(name)?)));
        }
        paths.extend(limits.file.iter().cloned().map(absolute));
        paths.sort();
        paths.dedup();
        return Ok(paths);
    }
    let folder = absolute(folder(&limits.place)?);
    let failed = |error| Failure::input(&folder.to_string_lossy(), &error);
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // No name starts with a dot; a file in the making may.
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}
