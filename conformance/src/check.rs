//! A subject, and its way through the cases.

use core::fmt;
use core::time::Duration;

use tollgate_core::{Quota, QuotaError};

use crate::{Case, Expect, Step};

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

/// An answer that differs from the case's.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// The case; `None` if there was none at all.
    pub case: Option<Case>,
    /// The number of the step, from 0.
    pub step: usize,
    /// The answer.
    pub seen: Seen,
}

/// An answer.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    /// To a take.
    Outcome(Outcome),
    /// To a look, or the sum of several takes.
    Tokens(u64),
    /// The quota can't be.
    Quota(QuotaError),
    /// There was nothing to do.
    Nothing,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(case) = &self.case else { return f.write_str("no cases") };
        let Case { id, why, steps, .. } = case;
        write!(f, "{id} ({why}): step {}, {:?}: {:?}", self.step, steps.get(self.step), self.seen)
    }
}

/// Checks one kind of bucket against all cases. Returns how many there were.
///
/// # Errors
///
/// The first answer that differs.
pub fn check<S: Subject>(cases: &[Case]) -> Result<usize, Failure> {
    if cases.is_empty() {
        return Err(Failure { case: None, step: 0, seen: Seen::Nothing });
    }
    for case in cases {
        run::<S>(case).map_err(|(step, seen)| Failure { case: Some(*case), step, seen })?;
    }
    Ok(cases.len())
}

fn run<S: Subject>(case: &Case) -> Result<(), (usize, Seen)> {
    let rate = &case.quota;
    let quota = Quota::new(rate.tokens, Duration::from_micros(rate.period_us))
        .and_then(|quota| quota.with_burst(rate.capacity))
        .map_err(|error| (0, Seen::Quota(error)))?;
    if case.steps.is_empty() {
        return Err((0, Seen::Nothing));
    }
    let mut subject = S::start(quota, case.start.level, case.start.at_us);
    for (number, step) in case.steps.iter().enumerate() {
        run_step(&mut subject, step).map_err(|seen| (number, seen))?;
    }
    Ok(())
}

fn run_step<S: Subject>(subject: &mut S, step: &Step) -> Result<(), Seen> {
    match *step {
        Step::Poll { from_us, every_us, until_us, take, expect_granted, tolerance } => {
            if cfg!(miri) && (until_us - from_us) / every_us.max(1) > 300 {
                return Ok(()); // Miri is slow.
            }
            let granted = poll(subject, from_us, every_us.max(1), until_us, take);
            right(granted.abs_diff(expect_granted) <= tolerance, Seen::Tokens(granted))
        }
        Step::Available { at_us, expect_tokens } => {
            let tokens = subject.available(at_us);
            right(tokens == expect_tokens, Seen::Tokens(tokens.into()))
        }
        Step::TakeUntilDenied { at_us, take_until_denied, expect_granted } => {
            if cfg!(miri) && expect_granted > 300 {
                return Ok(()); // Miri is slow.
            }
            let mut granted: u64 = 0;
            while subject.take(at_us, take_until_denied) == Outcome::Granted && granted < 1 << 32 {
                granted += u64::from(take_until_denied);
            }
            right(granted == u64::from(expect_granted), Seen::Tokens(granted))
        }
        Step::Take { at_us, take, expect, retry_after_us } => {
            let expected = match expect {
                Expect::Granted => Outcome::Granted,
                Expect::Denied => Outcome::Denied(Duration::from_micros(retry_after_us.unwrap_or(0))),
                Expect::Never => Outcome::Never,
            };
            let outcome = subject.take(at_us, take);
            right(outcome == expected, Seen::Outcome(outcome))
        }
        Step::Refund { refund } => {
            subject.refund(refund);
            Ok(())
        }
    }
}

/// Takes at each of many times, the last one included, and returns the sum.
fn poll<S: Subject>(subject: &mut S, from: u64, every: u64, until: u64, take: Option<u32>) -> u64 {
    let (mut now, mut granted) = (from, 0);
    while now <= until {
        let n = take.unwrap_or_else(|| subject.available(now));
        if subject.take(now, n) == Outcome::Granted {
            granted += u64::from(n);
        }
        now += every;
    }
    granted
}

fn right(is: bool, seen: Seen) -> Result<(), Seen> {
    if is { Ok(()) } else { Err(seen) }
}
