//! The black-box cases, and the soak that firmware runs too, against the pure state and the bucket in memory.
//! `TOLLGATE_CASES` names another file of cases.

#![allow(clippy::unwrap_used, reason = "a test")]

use tollgate_conformance::{InMemory, Pure, cases, check, soak};
use tollgate_core::{CriticalSectionWord, DefaultWord};

#[test]
fn the_pure_state_passes() {
    check::<Pure>(cases().unwrap()).unwrap();
}

#[test]
fn the_bucket_in_memory_passes() {
    check::<InMemory<DefaultWord>>(cases().unwrap()).unwrap();
}

#[test]
fn the_bucket_behind_a_critical_section_passes() {
    check::<InMemory<CriticalSectionWord>>(cases().unwrap()).unwrap();
}

#[test]
fn random_calls_are_answered_as_by_the_ideal_bucket() {
    let calls = if cfg!(miri) { 300 } else { 200_000 };
    soak::<Pure>(calls).unwrap();
    soak::<InMemory<DefaultWord>>(calls).unwrap();
}
