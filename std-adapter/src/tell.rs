//! What is told to `tracing`, with the feature of that name: what happens to limits, and no calls.

#![cfg_attr(not(feature = "tracing"), allow(unused_variables))]
// A flag of this process's own.
#![allow(clippy::disallowed_types)]

use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use tollgate_core::Quota;

pub(crate) fn created(path: &Path, quota: &Quota) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "tollgate", limit = %path.display(), %quota, "created");
}

pub(crate) fn opened(path: &Path, quota: &Quota) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "tollgate", limit = %path.display(), %quota, "opened");
}

/// In each process that comes to know it.
pub(crate) fn quota_changed(limit: &str, quota: &Quota) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "tollgate", limit, %quota, "quota changed");
}

/// A file that is not as it should be.
pub(crate) fn unfit(path: &Path, found: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "tollgate", limit = %path.display(), %found, "not fit for use");
}

/// What a policy decided is not in force.
pub(crate) fn not_applied(error: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "tollgate", %error, "quota not changed");
}

/// Whether the damage of a limit has been told: that is done once, however many calls find it.
#[derive(Debug, Default)]
pub(crate) struct Damage(AtomicBool);

impl Damage {
    #[cold]
    pub(crate) fn found(&self, limit: &str) {
        if !self.0.swap(true, Relaxed) {
            #[cfg(feature = "tracing")]
            tracing::error!(target: "tollgate", limit, "damaged while in use");
        }
    }
}
