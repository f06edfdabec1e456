//! Which limiter the command line names.

use tollgate::{FileError, SharedRateLimiter};

use crate::args::Cost;
use crate::exit::Failure;

/// Opens the file, or creates it if there is none and a rate is given.
pub(crate) fn limiter(take: &Cost) -> Result<SharedRateLimiter, Failure> {
    let path = &take.limit.file;
    match take.rate {
        Some(rate) => {
            let quota = rate.quota(take.burst).map_err(|error| Failure::usage(error.to_string()))?;
            // Before anything is created: a cost that no bucket of this quota can ever grant.
            if take.cost > quota.capacity() {
                let burst = quota.capacity();
                let message = format!("a cost of {} is more than the burst of {burst}; give --burst {0}", take.cost);
                return Err(Failure::usage(message));
            }
            Ok(SharedRateLimiter::open_or_create(path, quota)?)
        }
        None => match SharedRateLimiter::open(path) {
            Err(FileError::NotFound { path }) => {
                let message = format!("{}: there is no such file; give --rate to create it", path.display());
                Err(Failure::usage(message))
            }
            outcome => Ok(outcome?),
        },
    }
}
