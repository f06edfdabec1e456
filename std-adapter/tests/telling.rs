//! What a program's own recorders of metrics and events are told.

#![cfg(all(feature = "metrics", feature = "tracing"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test of real threads in real time")]

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshot};
use tollgate::{AcquireError, FileError, Outcome, Quota, SharedRateLimiter, Sidecar};

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

/// Text that several writers write to.
#[derive(Clone, Debug, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn events_tell_what_happens_to_a_limit() {
    let text = Text::default();
    let writer = text.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).without_time().with_max_level(tracing::Level::DEBUG);
    let subscriber = subscriber.with_writer(move || writer.clone()).finish();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    tracing::subscriber::with_default(subscriber, || {
        let limiter = SharedRateLimiter::create(&path, Quota::per_hour(10).unwrap()).unwrap();
        let other = SharedRateLimiter::open(&path).unwrap().with_name("other");
        limiter.set_quota(Quota::per_hour(20).unwrap()).unwrap();
        for _ in 0..3 {
            other.try_acquire(1).unwrap();
        }
        let length = limiter.path().metadata().unwrap().len();
        let zeros = vec![0; usize::try_from(length).unwrap()];
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&zeros, 0).unwrap();
        for _ in 0..3 {
            assert_eq!(other.try_acquire(1), Err(AcquireError::Damaged));
        }
        assert!(matches!(SharedRateLimiter::open(&path), Err(FileError::NotALimiter { .. })));
    });
    let text = String::from_utf8(text.0.lock().unwrap().clone()).unwrap();
    let path = path.to_str().unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let expected = [
        format!("INFO tollgate: created limit={path} quota=10 per 3600s, burst 10"),
        format!("DEBUG tollgate: opened limit={path} quota=10 per 3600s, burst 10"),
        format!("INFO tollgate: quota changed limit=\"{path}\" quota=20 per 3600s, burst 20"),
        "INFO tollgate: quota changed limit=\"other\" quota=20 per 3600s, burst 20".to_owned(),
        "ERROR tollgate: damaged while in use limit=\"other\"".to_owned(),
    ];
    assert_eq!(lines.iter().take(expected.len()).copied().collect::<Vec<_>>(), expected, "{text}");
    let last = format!("WARN tollgate: not fit for use limit={path} found={path}: not a limiter's file: ");
    assert!(lines.len() == expected.len() + 1 && lines[expected.len()].starts_with(&last), "{text}");
}
