//! What passed and what failed, a line each.

use core::fmt::Arguments;

/// Prints a line for each check, and counts them.
pub struct Report {
    print: fn(Arguments<'_>),
    passed: u32,
    failed: u32,
}

impl Report {
    pub const fn new(print: fn(Arguments<'_>)) -> Self {
        Self { print, passed: 0, failed: 0 }
    }

    /// Takes down one check, and what is to be said of it.
    pub fn check(&mut self, passed: bool, line: Arguments<'_>) {
        let (count, word) = if passed { (&mut self.passed, "ok") } else { (&mut self.failed, "FAILED") };
        *count += 1;
        (self.print)(format_args!("{word}: {line}"));
    }

    /// Prints the sum; returns whether all passed.
    pub fn finish(self) -> bool {
        let Self { print, passed, failed } = self;
        print(format_args!("{passed} passed, {failed} failed"));
        failed == 0 && passed > 0
    }
}
