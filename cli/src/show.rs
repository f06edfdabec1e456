//! `tollgate show`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use tollgate::{Quota, SharedRateLimiter};

use crate::args::Limit;
use crate::exit::{Failure, NOT_IN_TIME, refused};
use crate::limit::open;

/// Prints the quota, the level, and the times to the next token and to a full bucket.
pub(crate) fn show(limit: &Limit, as_json: bool) -> Result<ExitCode, Failure> {
    let limiter = open(limit)?;
    let text = if as_json { object(&limiter)?.to_string() } else { describe(&limiter)? };
    let mut out = std::io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| Failure::io("writing", &error))?;
    Ok(ExitCode::SUCCESS)
}

/// What is there at one time, by one reading of the clock, so that the figures agree.
struct Seen {
    quota: Quota,
    available: u32,
    next: Duration,
    full: Duration,
    paused: Duration,
}

impl Seen {
    fn now(limiter: &SharedRateLimiter) -> Result<Self, Failure> {
        let refused = |error| refused(limiter.path(), &error, NOT_IN_TIME);
        let (quota, now) = (limiter.quota(), limiter.now_micros());
        let available = limiter.available_at(now).map_err(refused)?;
        let wait = |n| limiter.retry_after_at(now, n).map_err(refused);
        let next = wait(available.saturating_add(1).min(quota.capacity()))?;
        Ok(Self { quota, available, next, full: wait(quota.capacity())?, paused: limiter.paused() })
    }
}

/// As a JSON object.
pub(crate) fn object(limiter: &SharedRateLimiter) -> Result<Value, Failure> {
    let seen = Seen::now(limiter)?;
    Ok(json!({
        "file": limiter.path().to_string_lossy(),
        "tokens": seen.quota.tokens(),
        "period_us": micros(seen.quota.period()),
        "burst": seen.quota.capacity(),
        "available": seen.available,
        "next_token_us": micros(seen.next),
        "full_us": micros(seen.full),
        "paused_us": micros(seen.paused),
        "read_only": limiter.is_read_only(),
    }))
}

/// For people.
pub(crate) fn describe(limiter: &SharedRateLimiter) -> Result<String, Failure> {
    let seen = Seen::now(limiter)?;
    let mut text = format!(
        "file        {}\nrate        {} per {:?}\nburst       {}\navailable   {}\nnext token  {}\nfull        {}",
        limiter.path().display(),
        seen.quota.tokens(),
        seen.quota.period(),
        seen.quota.capacity(),
        seen.available,
        after(seen.next),
        after(seen.full),
    );
    if !seen.paused.is_zero() {
        text.push_str(&format!("\npaused      for {:?}", seen.paused));
    }
    Ok(text)
}

fn after(wait: Duration) -> String {
    if wait.is_zero() { "now".to_owned() } else { format!("in {wait:?}") }
}

/// Microseconds; a period that is no whole number of them keeps its fraction.
fn micros(time: Duration) -> Value {
    match time.subsec_nanos() % 1000 {
        0 => u64::try_from(time.as_micros()).unwrap_or(u64::MAX).into(),
        _ => (time.as_secs_f64() * 1e6).into(),
    }
}
