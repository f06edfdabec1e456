//! `tollgate pipe`.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use tollgate::SharedRateLimiter;

use crate::args::{Limit, Quota};
use crate::exit::{Failure, NOT_IN_TIME, refused};
use crate::limit::{open_or_create, path};

/// Copies lines, each when its tokens are there. A signal ends it as it does cat(1): what was written was paid for.
pub(crate) fn pipe(limit: &Limit, quota: &Quota, bytes: bool) -> Result<ExitCode, Failure> {
    let path = path(limit.file.as_deref(), limit.name.as_deref(), &limit.place)?;
    let limiter = open_or_create(&path, &limit.place, quota, 1)?;
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        input.read_until(b'\n', &mut line).map_err(|error| Failure::io("reading", &error))?;
        if line.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let cost = if bytes { line.len() } else { 1 };
        acquire(&limiter, cost).map_err(|error| refused(&path, &error, NOT_IN_TIME))?;
        match output.write_all(&line).and_then(|()| output.flush()) {
            Ok(()) => {}
            // Nobody reads any more.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(Failure::io("writing", &error)),
        }
    }
}

/// Takes so many tokens, by and by if the bucket never holds as many.
fn acquire(limiter: &SharedRateLimiter, mut cost: usize) -> Result<(), tollgate::AcquireError> {
    while cost > 0 {
        let part = u32::try_from(cost).unwrap_or(u32::MAX).min(limiter.quota().capacity());
        limiter.acquire(part)?;
        cost -= usize::try_from(part).unwrap_or(cost);
    }
    Ok(())
}
