//! The time stamps of a log's lines.

use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

/// The requests of some logs.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// When they came, in microseconds since 1970.
    pub(crate) micros: Vec<i64>,
    /// Lines that were left out.
    pub(crate) skipped: u64,
    /// Stamps that were before the one above them.
    pub(crate) out_of_order: usize,
}

impl Requests {
    /// Puts them in the order of time. Servers write a line when a request ends, and so not always in that order.
    pub(crate) fn sort(&mut self) {
        self.out_of_order = self.micros.windows(2).filter(|pair| pair[1] < pair[0]).count();
        self.micros.sort_unstable();
    }

    /// The first and the last, once they are in order.
    pub(crate) fn span(&self) -> Option<(i64, i64)> {
        Some((*self.micros.first()?, *self.micros.last()?))
    }
}

/// Finds the time stamp of a line, in microseconds since 1970: its first field, in RFC 3339 or as seconds (or milli-,
/// micro- or nanoseconds, by their size) since 1970; or what is in its first brackets, as in the common log format.
pub(crate) fn stamp(line: &str) -> Option<i64> {
    let first = line.split_whitespace().next()?;
    epoch(first).or_else(|| rfc3339(line, first)).or_else(|| {
        let (_, rest) = line.split_once('[')?;
        let (inner, _) = rest.split_once(']')?;
        common_log(inner).or_else(|| rfc3339(inner, inner.split_whitespace().next()?))
    })
}

/// A stamp as a person reads it.
pub(crate) fn text(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| format!("{micros} µs"), |time| time.to_string())
}

/// 1764700000, 1764700000.25, 1764700000250 (ms), …
fn epoch(field: &str) -> Option<i64> {
    let (whole, fraction) = field.split_once('.').unwrap_or((field, ""));
    if whole.is_empty() || ![whole, fraction].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    // As many digits as seconds have in this millennium, or as the finer units have.
    let nanos = match whole {
        0..100_000_000_000 => 1_000_000_000,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1000,
        _ => 1,
    };
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let part = digits.parse::<i64>().ok()? * nanos / 1_000_000_000;
    i64::try_from((i128::from(whole) * i128::from(nanos) + i128::from(part)) / 1000).ok()
}

/// 2026-12-02T18:47:25.25Z, with a blank for the T as well; in UTC, if it has no offset.
fn rfc3339(line: &str, first: &str) -> Option<i64> {
    if !first.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    // A date alone has its time in the next field.
    let text =
        if first.len() <= 10 { format!("{first} {}", line.split_whitespace().nth(1)?) } else { first.to_owned() };
    let text = text.trim_end_matches([',', ';', ':', ']']);
    let time = text.parse::<Timestamp>();
    let time = time.or_else(|_| text.parse::<civil::DateTime>()?.to_zoned(TimeZone::UTC).map(|time| time.timestamp()));
    Some(time.ok()?.as_microsecond())
}

/// 02/Dec/2026:18:47:25 +0000
fn common_log(text: &str) -> Option<i64> {
    let time = strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).ok()?;
    Some(time.to_timestamp().ok()?.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_764_700_045;

    #[test]
    fn the_formats() {
        for (line, micros) in [
            ("2025-12-02T18:27:25Z", SECOND * 1_000_000),
            ("2025-12-02T18:27:25.250001Z GET /", SECOND * 1_000_000 + 250_001),
            ("2025-12-02T19:27:25+01:00 GET /", SECOND * 1_000_000),
            ("2025-12-02 18:27:25.5 GET /", SECOND * 1_000_000 + 500_000),
            ("2025-12-02 18:27:25,5: GET /", SECOND * 1_000_000 + 500_000),
            ("2025-12-02  18:27:25Z", SECOND * 1_000_000),
            ("[2025-12-02T18:27:25Z] GET /", SECOND * 1_000_000),
            ("[2025-12-02 18:27:25] GET /", SECOND * 1_000_000),
            ("1764700045", SECOND * 1_000_000),
            ("1764700045.25 GET /", SECOND * 1_000_000 + 250_000),
            ("1764700045.2500019 GET /", SECOND * 1_000_000 + 250_001),
            ("1764700045250", SECOND * 1_000_000 + 250_000),
            ("1764700045250001", SECOND * 1_000_000 + 250_001),
            ("1764700045250001999", SECOND * 1_000_000 + 250_001),
            ("0", 0),
            ("192.0.2.1 - - [02/Dec/2025:18:27:25 +0000] \"GET / HTTP/1.1\" 200 1", SECOND * 1_000_000),
            ("192.0.2.1 - me [02/Dec/2025:11:27:25 -0700] \"GET /[a] HTTP/1.1\" 200 1", SECOND * 1_000_000),
        ] {
            assert_eq!(stamp(line), Some(micros), "{line}");
        }
    }

    #[test]
    fn no_stamps() {
        for line in [
            "",
            "GET /",
            "-1",
            "1e9",
            "1.2.3",
            "99999999999999999999",
            "2025-12-02",
            "2025-13-02T18:27:25Z",
            "2025-12-02 GET /",
            "192.0.2.1 - - [02/Dez/2025:18:27:25 +0000] \"GET /\" 200 1",
            "192.0.2.1 - - [02/Dec/2025:18:27:25] \"GET /\" 200 1",
            "é[é]é",
        ] {
            assert_eq!(stamp(line), None, "{line}");
        }
    }
}
