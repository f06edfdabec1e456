//! `tollgate show`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use crate::args::Limit;
use crate::exit::{Failure, NOT_IN_TIME, refused};
use crate::limit::open;
use serde_json::json;

/// Prints the quota, the level, and the times to the next token and to a full bucket.
pub(crate) fn show(limit: &Limit, as_json: bool) -> Result<ExitCode, Failure> {
    let limiter = open(limit)?;
    let quota = limiter.quota();
    let refused = |error| refused(limiter.path(), &error, NOT_IN_TIME);
    // One reading of the clock, so that the figures agree.
    let now = limiter.now_micros();
    let available = limiter.available_at(now).map_err(refused)?;
    let next = limiter.retry_after_at(now, available.saturating_add(1).min(quota.capacity())).map_err(refused)?;
    let full = limiter.retry_after_at(now, quota.capacity()).map_err(refused)?;

    let text = if as_json {
        let object = json!({
            "file": limiter.path().to_string_lossy(),
            "tokens": quota.tokens(),
            "period_us": micros(quota.period()),
            "burst": quota.capacity(),
            "available": available,
            "next_token_us": micros(next),
            "full_us": micros(full),
            "paused_us": micros(limiter.paused()),
            "read_only": limiter.is_read_only(),
        });
        object.to_string()
    } else {
        format!(
            "file        {}\nrate        {} per {:?}\nburst       {}\navailable   {available}\nnext token  {}\nfull        {}{}",
            limiter.path().display(),
            quota.tokens(),
            quota.period(),
            quota.capacity(),
            after(next),
            after(full),
            paused(limiter.paused()),
        )
    };
    let mut out = std::io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| Failure::io("writing", &error))?;
    Ok(ExitCode::SUCCESS)
}

fn after(wait: Duration) -> String {
    if wait.is_zero() { "now".to_owned() } else { format!("in {wait:?}") }
}

fn paused(left: Duration) -> String {
    if left.is_zero() { String::new() } else { format!("\npaused      for {left:?}") }
}

/// Microseconds; a period that is no whole number of them keeps its fraction.
fn micros(time: Duration) -> serde_json::Value {
    match time.subsec_nanos() % 1000 {
        0 => u64::try_from(time.as_micros()).unwrap_or(u64::MAX).into(),
        _ => (time.as_secs_f64() * 1e6).into(),
    }
}
