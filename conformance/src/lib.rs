//! One suite of black-box cases for every implementation of a bucket: the pure state, the bucket in memory, the
//! bucket in a file.
//!
//! The cases are data: `cases/*.json`, each a quota, a starting level, and steps with the exact answers. Implement
//! [`Subject`], and call [`check`] with the [`cases`].

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tollgate_core::Quota;

/// A bucket under test, with the time as an argument everywhere.
pub trait Subject {
    /// Makes a bucket that holds `level` tokens at the time `at`, in microseconds.
    fn start(quota: Quota, level: u32, at: u64) -> Self;
    /// Takes `n` tokens at the time `now`.
    fn take(&mut self, now: u64, n: u32) -> Outcome;
    /// Returns the whole tokens at the time `now`.
    fn available(&mut self, now: u64) -> u32;
    /// Gives `n` tokens back.
    fn refund(&mut self, n: u32);
}

/// What became of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tokens were taken.
    Granted,
    /// Nothing was taken; it can succeed after this wait.
    Denied(Duration),
    /// Nothing was taken; it can never succeed.
    Never,
}

impl From<Result<u32, tollgate_core::TryAcquireError>> for Outcome {
    fn from(answer: Result<u32, tollgate_core::TryAcquireError>) -> Self {
        match answer {
            Ok(_) => Self::Granted,
            Err(error) => error.retry_after().map_or(Self::Never, Self::Denied),
        }
    }
}

/// One case of a file.
#[derive(Clone, Debug)]
pub struct Case(Value);

/// Reads a file of cases.
///
/// # Errors
///
/// What is wrong with the text, if it is not a list of cases.
pub fn parse(text: &str) -> Result<Vec<Case>, String> {
    match serde_json::from_str(text).map_err(|error| error.to_string())? {
        Value::Array(cases) => Ok(cases.into_iter().map(Case).collect()),
        _ => Err("expected a list of cases".to_owned()),
    }
}

/// Returns the cases to check: those of the file that the variable `TOLLGATE_CASES` names, from the top of the
/// workspace if it is relative, else the project's own.
///
/// # Errors
///
/// What is wrong with the file.
pub fn cases() -> Result<Vec<Case>, String> {
    if let Some(path) = std::env::var_os("TOLLGATE_CASES") {
        // Tests run in their package's folder; the one who sets the variable is at the top.
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        return parse(&text);
    }
    let mut cases = parse(include_str!("../cases/bucket.json"))?;
    cases.extend(parse(include_str!("../cases/phases.json"))?);
    Ok(cases)
}

/// Checks one kind of bucket against all cases. Returns how many there were.
///
/// # Errors
///
/// All answers that differ, a line each, with the case's name and reason.
pub fn check<S: Subject>(cases: &[Case]) -> Result<usize, String> {
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let (id, why) = (&case.0["id"], &case.0["why"]);
            run::<S>(&case.0).err().map(|failure| format!("{id} ({why}): {failure}"))
        })
        .collect();
    if cases.is_empty() {
        return Err("no cases".to_owned());
    }
    if failures.is_empty() { Ok(cases.len()) } else { Err(failures.join("\n")) }
}

fn run<S: Subject>(case: &Value) -> Result<(), String> {
    let quota = &case["quota"];
    let quota = Quota::new(int(quota, "tokens")?, Duration::from_micros(int(quota, "period_us")?))
        .and_then(|rate| rate.with_burst(int(quota, "capacity").unwrap_or(0)))
        .map_err(|error| error.to_string())?;
    let start = &case["start"];
    let mut subject = S::start(quota, int(start, "level")?, int(start, "at_us")?);
    let steps = case["steps"].as_array().filter(|steps| !steps.is_empty()).ok_or("no steps")?;
    for (number, step) in steps.iter().enumerate() {
        run_step(&mut subject, step).map_err(|failure| format!("step {number} {step}: {failure}"))?;
    }
    Ok(())
}

fn run_step<S: Subject>(subject: &mut S, step: &Value) -> Result<(), String> {
    if step.get("every_us").is_some() {
        return run_poll(subject, step);
    }
    let now = int(step, "at_us")?;
    if step.get("available").is_some() {
        return same(subject.available(now), int(step, "expect_tokens")?);
    }
    if step.get("take_until_denied").is_some() {
        let n = int(step, "take_until_denied")?;
        let mut granted: u32 = 0;
        if cfg!(miri) && int::<u32>(step, "expect_granted")? > 300 {
            return Ok(()); // Miri is slow.
        }
        while subject.take(now, n) == Outcome::Granted {
            granted = granted.checked_add(n).ok_or("more than 2^32 tokens at one time")?;
        }
        return same(granted, int(step, "expect_granted")?);
    }
    if step.get("refund").is_some() {
        subject.refund(int(step, "refund")?);
        return Ok(());
    }
    let expected = match step["expect"].as_str() {
        Some("granted") => Outcome::Granted,
        Some("denied") => Outcome::Denied(Duration::from_micros(int(step, "retry_after_us")?)),
        Some("never") => Outcome::Never,
        _ => return Err("no such step".to_owned()),
    };
    same(subject.take(now, int(step, "take")?), expected)
}

/// Takes at each of many times, the last one included, and compares the sum.
fn run_poll<S: Subject>(subject: &mut S, step: &Value) -> Result<(), String> {
    let (every, until): (u64, u64) = (int(step, "every_us")?, int(step, "until_us")?);
    let mut now: u64 = int(step, "from_us")?;
    let mut granted: u64 = 0;
    if cfg!(miri) && (until - now) / every.max(1) > 300 {
        return Ok(()); // Miri is slow.
    }
    while now <= until {
        let n = if step.get("take_all").is_some() { subject.available(now) } else { int(step, "take")? };
        if subject.take(now, n) == Outcome::Granted {
            granted += u64::from(n);
        }
        now += every.max(1);
    }
    let (expected, tolerance): (u64, u64) = (int(step, "expect_granted")?, int(step, "tolerance")?);
    if granted.abs_diff(expected) > tolerance {
        return Err(format!("granted {granted}, expected {expected} ± {tolerance}"));
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(seen: T, expected: T) -> Result<(), String> {
    if seen == expected { Ok(()) } else { Err(format!("{seen:?}, expected {expected:?}")) }
}

fn int<T: TryFrom<u64>>(object: &Value, key: &str) -> Result<T, String> {
    object[key]
        .as_u64()
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| format!("{key}: expected a whole number in range, found {}", object[key]))
}
