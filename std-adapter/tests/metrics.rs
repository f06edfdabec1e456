//! What a program's own recorder of metrics is told.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test of real threads in real time")]

use std::time::{Duration, Instant};

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshot};
use tollgate::{Outcome, Quota, SharedRateLimiter, Sidecar};

/// The value of a metric of a limit.
fn value(snapshot: Snapshot, metric: &str, limit: &str) -> Option<f64> {
    let is_it = |key: &metrics::Key| key.name() == metric && key.labels().any(|label| label.value() == limit);
    let (.., value) = snapshot.into_vec().into_iter().find(|(key, ..)| is_it(key.key()))?;
    match value {
        #[allow(clippy::cast_precision_loss, reason = "small numbers")]
        DebugValue::Counter(count) => Some(count as f64),
        DebugValue::Gauge(figure) => Some(figure.into_inner()),
        DebugValue::Histogram(_) => None,
    }
}

#[test]
fn the_sidecar_publishes_metrics() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    let quota = Quota::per_hour(10).unwrap();
    let sidecar = Sidecar::new(Duration::from_millis(5));
    let limiter = sidecar.register(SharedRateLimiter::create(&path, quota).unwrap()).unwrap();
    let named = SharedRateLimiter::in_memory(quota).unwrap().with_name("a name");
    let named = sidecar.register(named).unwrap();
    let nameless = sidecar.register(SharedRateLimiter::in_memory(quota).unwrap()).unwrap();
    limiter.try_acquire(3).unwrap();
    assert!(limiter.try_acquire(8).is_err());
    limiter.refund(1).unwrap();
    limiter.report(Outcome::Overload);
    // What another process does counts as well.
    SharedRateLimiter::open(&path).unwrap().try_acquire(2).unwrap();
    named.try_acquire(7).unwrap();
    nameless.try_acquire(1).unwrap();

    let path = path.to_str().unwrap();
    let begun = Instant::now();
    // A snapshot takes what it shows, so each look is asked for one figure, and the next one shows it again.
    let wait_for = |metric: &str, limit: &str, expected: f64| {
        while value(snapshotter.snapshot(), metric, limit) != Some(expected) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{metric} of {limit} is never {expected}");
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    wait_for("tollgate_granted_calls_total", path, 2.0);
    wait_for("tollgate_granted_tokens_total", path, 5.0);
    wait_for("tollgate_refused_calls_total", path, 1.0);
    wait_for("tollgate_refunded_tokens_total", path, 1.0);
    wait_for("tollgate_reported_overload_total", path, 1.0);
    wait_for("tollgate_available_tokens", path, 6.0);
    wait_for("tollgate_burst_tokens", path, 10.0);
    wait_for("tollgate_rate_tokens_per_second", path, 10.0 / 3600.0);
    wait_for("tollgate_paused_seconds", path, 0.0);
    wait_for("tollgate_available_tokens", "a name", 3.0);
    drop(limiter);
    drop((named, nameless));
    let names = snapshotter.snapshot().into_vec();
    assert!(names.iter().all(|(key, ..)| key.key().labels().all(|label| !label.value().is_empty())));
}
