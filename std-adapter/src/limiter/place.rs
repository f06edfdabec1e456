//! Where a limiter is, and what it is called.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use super::SharedRateLimiter;
use crate::file::Identity;
use crate::{AcquireError, Options};

/// Where a limiter's file is.
#[derive(Debug)]
pub(super) struct Place {
    /// Kept open, so that its number means this file and no later one.
    pub(super) _file: File,
    pub(super) identity: Identity,
    pub(super) options: Options,
}

/// Its file and its name.
impl SharedRateLimiter {
    /// Returns the path that the file was opened at, absolute; an empty one in memory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Calls it something else than its path in metrics and events, for example for one in memory.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns what it is called in metrics and events: its path, unless it has another [name](Self::with_name).
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match &self.name {
            Some(name) => name.into(),
            None => self.path.to_string_lossy(),
        }
    }

    /// Tells whether the file may only be read.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        !self.page.is_writable()
    }

    /// Checks that the path still names the file that is open. [`acquire`](Self::acquire) does this whenever it
    /// sleeps; a program that never sleeps may do it now and then.
    ///
    /// # Errors
    ///
    /// [`Removed`](AcquireError::Removed) and [`Replaced`](AcquireError::Replaced).
    pub fn check_identity(&self) -> Result<(), AcquireError> {
        let Some(place) = &self.place else { return Ok(()) };
        match Identity::named(&self.path) {
            Ok(found) if found == place.identity => Ok(()),
            Ok(_) => Err(AcquireError::Replaced),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(AcquireError::Removed),
            // Whatever it is, it does not say that the file is another.
            Err(_) => Ok(()),
        }
    }

    /// Whether both are the same limit.
    pub(crate) fn is_that_of(&self, other: &Self) -> bool {
        match (&self.place, &other.place) {
            (Some(one), Some(two)) => one.identity == two.identity,
            _ => std::ptr::eq(self, other),
        }
    }
}
