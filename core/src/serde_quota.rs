//! A quota in a configuration file: `{"tokens": 5000, "period_ns": 3600000000000, "burst": 100}`.

use core::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Quota;

#[derive(Serialize, Deserialize)]
#[serde(rename = "Quota", deny_unknown_fields)]
struct Fields {
    tokens: u32,
    period_ns: u64,
    /// The tokens of a period, if it is not given.
    #[serde(default)]
    burst: Option<u32>,
}

/// As `tokens`, `period_ns` (nanoseconds) and `burst`.
impl Serialize for Quota {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields =
            Fields { tokens: self.tokens(), period_ns: self.scale().period_nanos, burst: Some(self.capacity()) };
        fields.serialize(serializer)
    }
}

/// From `tokens`, `period_ns` (nanoseconds) and, optionally, `burst`; what is no quota is an error that says why.
impl<'de> Deserialize<'de> for Quota {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Fields { tokens, period_ns, burst } = Fields::deserialize(deserializer)?;
        Quota::new(tokens, Duration::from_nanos(period_ns))
            .and_then(|rate| burst.map_or(Ok(rate), |burst| rate.with_burst(burst)))
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_quota_comes_back_as_it_was() {
        let quota = crate::quota!(Quota::per_hour(5000), burst 100);
        let text = serde_json::to_string(&quota).unwrap();
        assert_eq!(text, r#"{"tokens":5000,"period_ns":3600000000000,"burst":100}"#);
        assert_eq!(serde_json::from_str::<Quota>(&text).unwrap(), quota);
        let short: Quota = serde_json::from_str(r#"{"tokens":7,"period_ns":1000000000}"#).unwrap();
        assert_eq!(short, Quota::per_second(7).unwrap());
    }

    #[test]
    fn what_is_no_quota_says_why() {
        for (text, reason) in [
            (r#"{"tokens":0,"period_ns":1000000000}"#, "at least 1 token"),
            (r#"{"tokens":1,"period_ns":1000000000,"burst":0}"#, "burst of 0"),
            (r#"{"tokens":1,"period_ns":1}"#, "shorter than 1µs: 1ns"),
            (r#"{"tokens":1,"period_ns":1000,"bursts":1}"#, "unknown field `bursts`"),
        ] {
            let error = serde_json::from_str::<Quota>(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
