//! Every model that a flaw of the words must break: a model that passes with it proves nothing.

use tollgate_loom_tests::{Flaw, Flaws, models};

#[test]
#[should_panic(expected = "granted")]
fn a_store_for_the_exchange_grants_twice() {
    models::acquire_vs_acquire(Flaws::of_state(Flaw::StoreForCas));
}

#[test]
#[should_panic(expected = "granted and left")]
fn a_store_for_the_exchange_loses_a_refund() {
    models::refund_vs_acquire(Flaws::of_state(Flaw::StoreForCas));
}

/// The horizon read after the state may be older than its writer's: a drained bucket looks full.
#[test]
#[should_panic(expected = "granted")]
fn a_relaxed_load_of_the_state() {
    models::twice_after_long_idle(Flaws::of_state(Flaw::RelaxedLoad), 70);
}

#[test]
#[should_panic(expected = "granted")]
fn a_relaxed_write_of_the_state() {
    models::twice_after_long_idle(Flaws::of_state(Flaw::RelaxedWrite), 70);
}

/// The state read after the horizon may be older than the one for which it was raised: its stamp looks a turn later.
#[test]
#[should_panic(expected = "saw")]
fn a_relaxed_load_of_the_horizon() {
    models::look_vs_raise(Flaws::of_horizon(Flaw::RelaxedLoad));
}

#[test]
#[should_panic(expected = "saw")]
fn a_relaxed_write_of_the_horizon() {
    models::look_vs_raise(Flaws::of_horizon(Flaw::RelaxedWrite));
}
