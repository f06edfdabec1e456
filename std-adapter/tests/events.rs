//! What a program's own recorder of events is told. One test, since tracing remembers for the whole process which events nobody wants.

#![cfg(feature = "tracing")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use tollgate::{AcquireError, FileError, Quota, SharedRateLimiter};

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
