//! Rates as people write them: `10/s`, `0.5/s`, `5/15s`, `1/365d`.

use std::str::FromStr;
use std::time::Duration;

use tollgate::{Quota, QuotaError};

const EXAMPLES: &str = "write for example 10/s, 0.5/s, 5/15s, 5000/h or 1/365d";

/// Units and their nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Whole tokens in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    tokens: u32,
    period: Duration,
}

impl Rate {
    /// The quota with this burst, or with the tokens of one second, at least 1.
    pub(crate) fn quota(self, burst: Option<u32>) -> Result<Quota, QuotaError> {
        let of_a_second = u128::from(self.tokens) * 1_000_000_000 / self.period.as_nanos();
        let burst = burst.unwrap_or_else(|| u32::try_from(of_a_second).unwrap_or(u32::MAX).max(1));
        Quota::new(self.tokens, self.period)?.with_burst(burst)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((count, unit)) = text.split_once('/') else {
            return Err(format!("a unit is missing; {EXAMPLES}"));
        };
        let (tokens, parts) =
            decimal(count).ok_or_else(|| format!("{count:?} is not a number of tokens; {EXAMPLES}"))?;
        let nanos = period(unit).ok_or_else(|| {
            format!("{unit:?} is not a unit of time (us, ms, s, m, h, d, or a multiple as in 15s); {EXAMPLES}")
        })?;
        // tokens/parts in each unit is `tokens` in `parts` units; in lowest terms, if it was a fraction.
        let divisor = if parts > 1 { gcd(tokens, parts) } else { 1 };
        let tokens = u32::try_from(tokens / divisor)
            .map_err(|_| format!("{count} is more than {} tokens; name a shorter unit of time", u32::MAX))?;
        let nanos = nanos.checked_mul(parts / divisor);
        let period = Duration::from_nanos(nanos.ok_or_else(|| format!("it is slower than 1/36500d; {EXAMPLES}"))?);
        Quota::new(tokens, period).map_err(|error| format!("{error}; {EXAMPLES}"))?;
        Ok(Self { tokens, period })
    }
}

/// Reads a decimal number as a fraction: 0.25 is 25/100.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !text.chars().all(|c| c.is_ascii_digit() || c == '.') || whole.is_empty() {
        return None;
    }
    Some((digits.parse().ok()?, 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?))
}

/// Reads a time with its unit: 30s, 1.5m.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(|c| c.is_ascii_digit() || *c == b'.').count();
    let (number, unit) = text.split_at(digits);
    let ((count, parts), (_, nanos)) = (decimal(number)?, UNITS.into_iter().find(|(name, _)| *name == unit)?);
    Some(Duration::from_nanos(nanos.checked_mul(count)? / parts))
}

/// Reads a unit of time or a multiple of one, in nanoseconds.
fn period(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (multiple, unit) = text.split_at(digits);
    let (_, nanos) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let multiple = if multiple.is_empty() { 1 } else { multiple.parse().ok()? };
    nanos.checked_mul(multiple)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(text: &str) -> String {
        text.parse::<Rate>().unwrap().quota(None).unwrap().to_string()
    }

    #[test]
    fn rates_with_their_default_burst() {
        assert_eq!(quota("10/s"), "10 per 1s, burst 10");
        assert_eq!(quota("0.5/s"), "1 per 2s, burst 1");
        assert_eq!(quota("1.50/s"), "3 per 2s, burst 1");
        assert_eq!(quota("5/15s"), "5 per 15s, burst 1");
        assert_eq!(quota("5000/h"), "5000 per 3600s, burst 1");
        assert_eq!(quota("1/d"), "1 per 86400s, burst 1");
        assert_eq!(quota("1/365d"), "1 per 31536000s, burst 1");
        assert_eq!(quota("1/36500d"), "1 per 3153600000s, burst 1");
        assert_eq!(quota("4000000000/s"), "4000000000 per 1s, burst 4000000000");
        assert_eq!(quota("2/ms"), "2 per 1ms, burst 2000");
        assert_eq!(quota("3/us"), "3 per 1µs, burst 3000000");
        assert_eq!(quota("4294967295/us"), "4294967295 per 1µs, burst 4294967295");
        assert_eq!(quota("120/m"), "120 per 60s, burst 2");
    }

    #[test]
    fn what_is_wrong_is_named_with_a_right_one() {
        for (text, reason) in [
            ("10", "a unit is missing"),
            ("", "a unit is missing"),
            ("/s", "\"\" is not a number"),
            ("ten/s", "\"ten\" is not a number"),
            ("-1/s", "\"-1\" is not a number"),
            ("+1/s", "\"+1\" is not a number"),
            (".5/s", "\".5\" is not a number"),
            ("1.2.3/s", "\"1.2.3\" is not a number"),
            ("1e3/s", "\"1e3\" is not a number"),
            ("99999999999999999999/s", "is not a number"),
            ("0/s", "rate of 0 tokens"),
            ("0.0/s", "rate of 0 tokens"),
            ("4294967296/s", "more than 4294967295 tokens"),
            ("10/", "\"\" is not a unit"),
            ("10/y", "\"y\" is not a unit"),
            ("10/s s", "\"s s\" is not a unit"),
            ("10/1.5s", "\"1.5s\" is not a unit"),
            ("10/-1s", "\"-1s\" is not a unit"),
            ("1/0s", "shorter than 1µs"),
            ("1/36526d", "longer than 100 years"),
            ("1/999999999d", "is not a unit"),
            ("0.000000000001/365d", "slower than 1/36500d"),
        ] {
            let error = text.parse::<Rate>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(error.contains("10/s") || error.contains("shorter unit"), "{text}: {error}");
        }
    }
}
