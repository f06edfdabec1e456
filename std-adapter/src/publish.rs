//! What is published to the recorder of the `metrics` crate, with the feature of that name: under the names of
//! `tollgate metrics`, but for the waits.

use metrics::{counter, gauge};
use tollgate_core::Count;

use crate::SharedRateLimiter;

/// The names of the counts.
const COUNTERS: [(&str, Count); 8] = [
    ("tollgate_granted_calls_total", Count::GrantedCalls),
    ("tollgate_granted_tokens_total", Count::GrantedTokens),
    ("tollgate_refused_calls_total", Count::RefusedCalls),
    ("tollgate_contended_calls_total", Count::ContendedCalls),
    ("tollgate_refunded_tokens_total", Count::RefundedTokens),
    ("tollgate_reported_ok_total", Count::Ok),
    ("tollgate_reported_overload_total", Count::Overload),
    ("tollgate_waited_microseconds_total", Count::WaitedMicros),
];

pub(crate) fn publish(limiter: &SharedRateLimiter) {
    let name = limiter.name();
    // Limiters in memory would all be the same one.
    if name.is_empty() {
        return;
    }
    let (counts, quota) = (limiter.counts(), limiter.quota());
    for (metric, count) in COUNTERS {
        counter!(metric, "limit" => name.to_string()).absolute(counts.get(count));
    }
    if let Ok(available) = limiter.available() {
        gauge!("tollgate_available_tokens", "limit" => name.to_string()).set(available);
    }
    gauge!("tollgate_burst_tokens", "limit" => name.to_string()).set(quota.capacity());
    let rate = f64::from(quota.tokens()) / quota.period().as_secs_f64();
    gauge!("tollgate_rate_tokens_per_second", "limit" => name.to_string()).set(rate);
    gauge!("tollgate_paused_seconds", "limit" => name.to_string()).set(limiter.paused().as_secs_f64());
}
