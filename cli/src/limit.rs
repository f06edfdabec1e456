//! Which limiter the command line names.

use std::path::{Path, PathBuf};

use tollgate::{FileError, Options, SharedRateLimiter};

use crate::args::{Limit, Quota, Take, Where};
use crate::exit::Failure;
use crate::place::{named, path_or_name};

/// A limiter, and what to take of it.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) limiter: SharedRateLimiter,
    pub(crate) cost: u32,
}

/// Opens what `run` and `take` name, or creates it if there is none and a rate is given.
pub(crate) fn shares(take: &Take) -> Result<Vec<Share>, Failure> {
    if take.limit.is_empty() {
        let path = path(take.file.as_deref(), take.name.as_deref(), &take.place)?;
        let limiter = open_or_create(&path, &take.place, &take.quota, take.cost)?;
        return Ok(vec![Share { limiter, cost: take.cost }]);
    }
    let share = |limit: &crate::args::LimitCost| {
        let path = path_or_name(&limit.limit, &take.place)?;
        Ok(Share { limiter: existing(&path, &take.place, "create it with `tollgate set`")?, cost: limit.cost })
    };
    take.limit.iter().map(share).collect()
}

/// Opens the limit, or creates it if there is none and a rate is given.
pub(crate) fn open_or_create(
    path: &Path,
    place: &Where,
    quota: &Quota,
    cost: u32,
) -> Result<SharedRateLimiter, Failure> {
    let Some(rate) = quota.rate else {
        return existing(path, place, "give --rate to create it");
    };
    let quota = rate.quota(quota.burst).map_err(|error| Failure::usage(error.to_string()))?;
    // Before anything is created: a cost that no bucket of this quota can ever grant.
    if cost > quota.capacity() {
        let burst = quota.capacity();
        return Err(Failure::usage(format!("a cost of {cost} is more than the burst of {burst}; give --burst {cost}")));
    }
    Ok(options(place).open_or_create(path, quota)?)
}

/// Opens a limit that must be there.
pub(crate) fn open(limit: &Limit) -> Result<SharedRateLimiter, Failure> {
    Ok(options(&limit.place).open(self::path(limit.file.as_deref(), limit.name.as_deref(), &limit.place)?)?)
}

/// Opens a limit that must be there, to look at it: this process does not count as one that uses it.
pub(crate) fn open_to_look(path: &Path, place: &Where) -> Result<SharedRateLimiter, Failure> {
    Ok(options(place).counters(false).open(path)?)
}

/// The path of the one limit that is named.
pub(crate) fn path(file: Option<&Path>, name: Option<&str>, place: &Where) -> Result<PathBuf, Failure> {
    match (file, name) {
        (Some(file), _) => Ok(file.to_owned()),
        (None, Some(name)) => named(name, place),
        (None, None) => Err(Failure::usage("a limit is missing; give --file or --name")),
    }
}

pub(crate) fn options(place: &Where) -> Options {
    place.allow_owner.iter().fold(Options::new().mode(place.mode), |options, owner| options.allow_owner(*owner))
}

fn existing(path: &Path, place: &Where, remedy: &str) -> Result<SharedRateLimiter, Failure> {
    match options(place).open(path) {
        Err(FileError::NotFound { path }) => {
            Err(Failure::usage(format!("{}: there is no such file; {remedy}", path.display())))
        }
        outcome => Ok(outcome?),
    }
}
