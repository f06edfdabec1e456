//! `tollgate set`, `pause`, `resume`, `refund` and `reset`.

use std::process::ExitCode;
use std::time::Duration;

use tollgate::{AcquireError, FileError, SharedRateLimiter};

use crate::args::Limit;
use crate::exit::{Failure, NOT_IN_TIME, refused};
use crate::limit::{open, options, path};
use crate::rate::Rate;

/// Sets a quota, or creates the limit with it.
pub(crate) fn set(limit: &Limit, rate: Rate, burst: Option<u32>) -> Result<ExitCode, Failure> {
    let quota = rate.quota(burst).map_err(|error| Failure::usage(error.to_string()))?;
    let path = path(limit.file.as_deref(), limit.name.as_deref(), &limit.place)?;
    let options = options(&limit.place);
    match options.open_or_create(&path, quota) {
        Err(FileError::QuotaMismatch { .. }) => options.open(&path)?.set_quota(quota)?,
        outcome => drop(outcome?),
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn pause(limit: &Limit, time: Duration) -> Result<ExitCode, Failure> {
    change(limit, |limiter| limiter.pause_for(time))
}

pub(crate) fn resume(limit: &Limit) -> Result<ExitCode, Failure> {
    change(limit, SharedRateLimiter::resume)
}

pub(crate) fn refund(limit: &Limit, cost: u32) -> Result<ExitCode, Failure> {
    change(limit, |limiter| limiter.refund(cost))
}

pub(crate) fn reset(limit: &Limit) -> Result<ExitCode, Failure> {
    change(limit, SharedRateLimiter::reset)
}

fn change(
    limit: &Limit,
    change: impl FnOnce(&SharedRateLimiter) -> Result<(), AcquireError>,
) -> Result<ExitCode, Failure> {
    let limiter = open(limit)?;
    change(&limiter).map_err(|error| refused(limiter.path(), &error, NOT_IN_TIME))?;
    Ok(ExitCode::SUCCESS)
}
