//! The cases and the soak, against the plain state and against buckets over each kind of word.

use tollgate_conformance::Expect::*;
use tollgate_conformance::Step::*;
use tollgate_conformance::{Case, InMemory, Pure, Rate, Start, Subject, check, soak};
use tollgate_core::DefaultWord;

use crate::Report;

static CASES: &[Case] = include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// Checks that all cases, and `calls` random calls on each of some quotas, are answered to the token and the
/// microsecond.
pub fn check_answers(report: &mut Report, calls: u64) {
    check_subject::<Pure>(report, "the plain state", calls);
    check_subject::<InMemory<DefaultWord>>(report, "the bucket", calls);
    check_subject::<InMemory<portable_atomic::AtomicU64>>(report, "the bucket over portable-atomic", calls);
}

fn check_subject<S: Subject>(report: &mut Report, name: &str, calls: u64) {
    match check::<S>(CASES) {
        Ok(count) => report.check(count > 0, format_args!("{name}: {count} cases")),
        Err(failure) => report.check(false, format_args!("{name}: {failure}")),
    }
    match soak::<S>(calls) {
        Ok(calls) => report.check(calls > 0, format_args!("{name}: {calls} random calls on each of 8 quotas")),
        Err(astray) => report.check(false, format_args!("{name}: {astray:?}")),
    }
}
