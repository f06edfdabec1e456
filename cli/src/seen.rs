//! What there is to see of a limit at one time.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tollgate::{AcquireError, Count, Counts, Process, Quota, SharedRateLimiter, TryAcquireError, Waits};

use crate::exit::plain;

/// What is there at one time, by one reading of the clock, so that the figures agree.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) path: PathBuf,
    /// When this was, in microseconds of the limiter's time.
    pub(crate) at: u64,
    pub(crate) quota: Quota,
    pub(crate) available: u32,
    pub(crate) next: Duration,
    pub(crate) full: Duration,
    pub(crate) paused: Duration,
    pub(crate) read_only: bool,
    /// What all processes have counted since the limit was made.
    pub(crate) counts: Counts,
    pub(crate) waits: Waits,
    pub(crate) processes: Vec<Process>,
}

impl Seen {
    pub(crate) fn now(limiter: &SharedRateLimiter) -> Result<Self, AcquireError> {
        let mut attempts = 10;
        loop {
            match Self::attempt(limiter) {
                // Meanwhile somebody has set a smaller burst.
                Err(AcquireError::Refused(TryAcquireError::ExceedsCapacity { .. })) if attempts > 0 => attempts -= 1,
                outcome => return outcome,
            }
        }
    }

    fn attempt(limiter: &SharedRateLimiter) -> Result<Self, AcquireError> {
        let (quota, at) = (limiter.quota(), limiter.now_micros());
        let available = limiter.available_at(at)?;
        let wait = |n| limiter.retry_after_at(at, n);
        let next = wait(available.saturating_add(1).min(quota.capacity()))?;
        let full = wait(quota.capacity())?;
        Ok(Self {
            path: limiter.path().to_owned(),
            at,
            quota,
            available,
            next,
            full,
            paused: limiter.paused(),
            read_only: limiter.is_read_only(),
            counts: limiter.counts(),
            waits: limiter.waits(),
            processes: limiter.attached(),
        })
    }

    /// As a JSON object: what a script finds in `show --json` and `watch --json`.
    pub(crate) fn object(&self) -> Value {
        let waits = self.waits.classes().map(|(calls, below)| json!({ "below_us": below, "calls": calls }));
        let mut object = json!({
            "file": text_of(&self.path),
            "tokens": self.quota.tokens(),
            "period_us": micros(self.quota.period()),
            "burst": self.quota.capacity(),
            "available": self.available,
            "next_token_us": micros(self.next),
            "full_us": micros(self.full),
            "paused_us": micros(self.paused),
            "read_only": self.read_only,
            "waits": waits.collect::<Vec<_>>(),
            "processes": self.processes.iter().map(process).collect::<Vec<_>>(),
        });
        add_counts(&mut object, &self.counts);
        object
    }
}

fn process(process: &Process) -> Value {
    let mut object = json!({
        "pid": process.id,
        "command": command(process),
        "idle_us": micros(process.idle),
    });
    add_counts(&mut object, &process.counts);
    object
}

fn add_counts(object: &mut Value, counts: &Counts) {
    for (name, count) in [
        ("granted_calls", Count::GrantedCalls),
        ("granted_tokens", Count::GrantedTokens),
        ("refused_calls", Count::RefusedCalls),
        ("contended_calls", Count::ContendedCalls),
        ("refunded_tokens", Count::RefundedTokens),
        ("reported_ok", Count::Ok),
        ("reported_overload", Count::Overload),
        ("waited_us", Count::WaitedMicros),
    ] {
        object[name] = counts.get(count).into();
    }
}

/// The name of the program that a process runs; `None` if it can't be told.
pub(crate) fn command(process: &Process) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{}/comm", process.id?)).ok()?;
    Some(plain(name.trim_end()))
}

/// A path as text; if it is not UTF-8, with escapes.
pub(crate) fn text_of(path: &Path) -> Cow<'_, str> {
    match path.to_str() {
        Some(text) => text.into(),
        None => path.as_os_str().as_bytes().escape_ascii().to_string().into(),
    }
}

/// The last part of a path: how a limit is called among others of its folder.
pub(crate) fn name(path: &Path) -> String {
    plain(&text_of(path.file_name().map_or(path, Path::new)))
}

/// Microseconds; a period that is no whole number of them keeps its fraction.
fn micros(time: Duration) -> Value {
    match time.subsec_nanos() % 1000 {
        0 => u64::try_from(time.as_micros()).unwrap_or(u64::MAX).into(),
        _ => (time.as_secs_f64() * 1e6).into(),
    }
}
