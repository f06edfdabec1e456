//! Everything that can happen to a file while it is used, with real processes, real signals and real mounts.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test")]

mod any_bytes;
#[path = "../children/mod.rs"]
mod children;
mod damage;
mod files;
mod roles;
mod steering;
mod together;

use std::fs::{File, OpenOptions};
use std::path::PathBuf;

use tempfile::TempDir;
use tollgate::{Quota, SharedRateLimiter, quota};

/// A burst, and no second token while a test runs.
const SLOW: Quota = quota!(Quota::per_day(1), burst 1_000_000);
/// How long a limiter's file is.
const LENGTH: u64 = 32768;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("limit")
    }

    fn create(&self) -> SharedRateLimiter {
        SharedRateLimiter::create(self.path(), SLOW).unwrap()
    }

    fn writable(&self) -> File {
        OpenOptions::new().write(true).open(self.path()).unwrap()
    }

    fn entries(&self) -> usize {
        std::fs::read_dir(self.0.path()).unwrap().count()
    }
}

/// Where the children start; a test that passes where this is no child.
#[test]
fn child() {
    roles::play();
}
