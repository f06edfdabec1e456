//! What a case is.

#[cfg(feature = "std")]
use serde::Deserialize;

/// A quota, a starting level, and calls with their exact answers.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "std", derive(Deserialize))]
pub struct Case {
    /// Its name.
    pub id: &'static str,
    /// What it is there for.
    pub why: &'static str,
    /// The quota.
    pub quota: Rate,
    /// The bucket at first.
    pub start: Start,
    /// The calls.
    #[cfg_attr(feature = "std", serde(deserialize_with = "crate::files::steps"))]
    pub steps: &'static [Step],
}

/// A quota, as numbers.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "std", derive(Deserialize))]
pub struct Rate {
    /// The burst.
    pub capacity: u32,
    /// The tokens in a period.
    pub tokens: u32,
    /// The period, in microseconds.
    pub period_us: u64,
}

/// What a bucket holds at first.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "std", derive(Deserialize))]
pub struct Start {
    /// Its tokens.
    pub level: u32,
    /// When, in microseconds.
    pub at_us: u64,
}

/// One call, or many alike, and the answer. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "std", derive(Deserialize), serde(untagged))]
#[allow(missing_docs, reason = "the names are those of the calls and their arguments")]
pub enum Step {
    /// Takes `take` tokens, or all that there are, at each of many times, the last one included.
    Poll { from_us: u64, every_us: u64, until_us: u64, take: Option<u32>, expect_granted: u64, tolerance: u64 },
    /// Looks.
    Available { at_us: u64, expect_tokens: u32 },
    /// Takes again and again at one time.
    TakeUntilDenied { at_us: u64, take_until_denied: u32, expect_granted: u32 },
    /// Takes.
    Take { at_us: u64, take: u32, expect: Expect, retry_after_us: Option<u64> },
    /// Gives back.
    Refund { refund: u32 },
}

/// What becomes of a take.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "std", derive(Deserialize), serde(rename_all = "lowercase"))]
pub enum Expect {
    /// The tokens are taken.
    Granted,
    /// Not now: after the step's `retry_after_us`.
    Denied,
    /// Nothing is taken, and never can be.
    Never,
}
