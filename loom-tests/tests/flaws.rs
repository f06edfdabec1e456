//! Every model that a flaw of the words must break: a model that passes with it proves nothing.

use tollgate_loom_tests::{Flaw, Flaws, handshake_models, models, pool_models, ring_models};

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

/// A horizon that can fall to an earlier epoch's makes the bucket look full.
#[test]
#[should_panic(expected = "granted")]
fn a_store_for_the_raise_of_the_horizon() {
    models::late_raise(Flaws::of_horizon(Flaw::StoreForCas));
}

#[test]
#[should_panic(expected = "claimed")]
fn a_store_in_claim_vs_claim() {
    pool_models::claim_vs_claim(Flaw::StoreForCas);
}

#[test]
#[should_panic(expected = "claimed and left")]
fn a_store_in_claim_vs_refill() {
    pool_models::claim_vs_refill(Flaw::StoreForCas);
}

#[test]
#[should_panic(expected = "found room")]
fn a_store_in_refill_vs_refill() {
    pool_models::refill_vs_refill(Flaw::StoreForCas);
}

#[test]
#[should_panic(expected = "all was taken once")]
fn a_store_in_drain_vs_claim() {
    pool_models::drain_vs_claim(Flaw::StoreForCas);
}

#[test]
#[should_panic(expected = "drained and left")]
fn a_store_in_drain_vs_refill() {
    pool_models::drain_vs_refill(Flaw::StoreForCas);
}

#[test]
#[should_panic]
fn a_store_in_set_capacity_vs_claim() {
    pool_models::set_capacity_vs_claim(Flaw::StoreForCas);
}

#[test]
#[should_panic]
fn a_store_in_set_capacity_vs_refill() {
    pool_models::set_capacity_vs_refill(Flaw::StoreForCas);
}

#[test]
#[should_panic(expected = "of a full pool")]
fn a_relaxed_load_of_the_pool() {
    pool_models::shrink_vs_claim_of_all(Flaw::RelaxedLoad);
}

#[test]
#[should_panic(expected = "of a full pool")]
fn a_relaxed_write_of_the_pool() {
    pool_models::shrink_vs_claim_of_all(Flaw::RelaxedWrite);
}

#[test]
#[should_panic(expected = "claimed and left")]
fn a_relaxed_load_while_the_pool_grows() {
    pool_models::grow_vs_claim(Flaw::RelaxedLoad);
}

#[test]
#[should_panic(expected = "claimed and left")]
fn a_relaxed_write_while_the_pool_grows() {
    pool_models::grow_vs_claim(Flaw::RelaxedWrite);
}

#[test]
#[should_panic(expected = "spent and left")]
fn a_store_in_permit_drop_vs_claim() {
    pool_models::permit_drop_vs_claim(Flaw::StoreForCas);
}

#[test]
#[should_panic(expected = "granted")]
fn a_store_in_zero_word_vs_zero_word() {
    pool_models::zero_word_vs_zero_word(Flaw::StoreForCas);
}

#[test]
#[should_panic(expected = "granted")]
fn a_store_in_one_word_at_its_wrap() {
    pool_models::one_word_at_its_wrap(Flaw::StoreForCas);
}

#[test]
#[should_panic]
fn a_store_in_reset_vs_acquire() {
    models::reset_vs_acquire(Flaws::of_state(Flaw::StoreForCas));
}

#[test]
#[should_panic]
fn a_store_in_acquire_up_to_vs_acquire() {
    models::acquire_up_to_vs_acquire(Flaws::of_state(Flaw::StoreForCas));
}

#[test]
#[should_panic]
fn a_store_in_permit_drop_vs_acquire() {
    models::permit_drop_vs_acquire(Flaws::of_state(Flaw::StoreForCas), 16);
}

#[test]
#[should_panic(expected = "left")]
fn a_store_for_the_exchange_when_handing_over() {
    models::hand_over_vs_acquire(Flaws::of_state(Flaw::StoreForCas));
}

/// The words of the heir may not be there yet.
#[test]
#[should_panic(expected = "granted")]
fn a_relaxed_load_of_the_seal() {
    models::hand_over_vs_acquire(Flaws::of_state(Flaw::RelaxedLoad));
}

#[test]
#[should_panic(expected = "granted")]
fn a_relaxed_write_of_the_seal() {
    models::hand_over_vs_acquire(Flaws::of_state(Flaw::RelaxedWrite));
}

#[test]
#[should_panic(expected = "left")]
fn a_store_for_the_exchange_loses_a_refund_when_handing_over() {
    models::hand_over_vs_refund(Flaws::of_state(Flaw::StoreForCas));
}

#[test]
#[should_panic(expected = "after")]
fn a_store_for_the_exchange_forgets_a_debt() {
    models::overdraw_vs_acquire(Flaws::of_state(Flaw::StoreForCas));
}

/// A late writer puts its event over a later one.
#[test]
#[should_panic(expected = "missed")]
fn a_store_in_a_slot_of_the_ring() {
    ring_models::writers_vs_reader::<1>(Flaw::None, Flaw::StoreForCas);
}

/// Two writers have one place.
#[test]
#[should_panic(expected = "missed")]
fn a_store_in_the_head_of_the_ring() {
    ring_models::writers_vs_reader::<4>(Flaw::StoreForCas, Flaw::None);
}

/// Somebody who ends disarms the ring for somebody who has come.
#[test]
#[should_panic]
fn a_store_of_the_watchers() {
    ring_models::watcher_vs_watcher(Flaw::StoreForCas, Flaw::None);
}

/// Two sit in one seat.
#[test]
#[should_panic(expected = "for both")]
fn a_store_for_the_exchange_of_an_owner() {
    handshake_models::attach_vs_attach::<1>(Flaw::StoreForCas);
}

#[test]
#[should_panic(expected = "totals")]
fn a_store_for_the_addition_in_the_common_seat() {
    handshake_models::attach_vs_attach::<0>(Flaw::StoreForCas);
}

#[test]
#[should_panic(expected = "totals")]
fn a_store_when_a_dead_one_is_followed() {
    handshake_models::attach_vs_attach_after_a_death(Flaw::StoreForCas);
}

#[test]
#[should_panic]
fn a_store_when_a_seat_is_freed() {
    handshake_models::free_vs_attach(Flaw::StoreForCas);
}

/// The counts of who left may not be there yet, and are lost.
#[test]
#[should_panic(expected = "totals")]
fn a_relaxed_load_of_a_seat_that_was_left() {
    handshake_models::leave_vs_attach(Flaw::RelaxedLoad);
}

#[test]
#[should_panic(expected = "totals")]
fn a_relaxed_write_of_a_seat_that_is_left() {
    handshake_models::leave_vs_attach(Flaw::RelaxedWrite);
}

#[test]
#[should_panic(expected = "totals")]
fn a_relaxed_write_of_a_seat_that_is_freed() {
    handshake_models::freed_for_another(Flaw::RelaxedWrite);
}

/// The counts of the next one look like the dead one's.
#[test]
#[should_panic]
fn a_relaxed_load_of_a_seat_that_is_looked_at() {
    handshake_models::look_vs_attach_after_a_death(Flaw::RelaxedLoad);
}

#[test]
#[should_panic]
fn a_relaxed_write_of_a_seat_that_is_looked_at() {
    handshake_models::look_vs_attach_after_a_death(Flaw::RelaxedWrite);
}

#[test]
#[should_panic(expected = "who has it")]
fn a_store_for_the_exchange_of_a_lease() {
    handshake_models::hold_vs_hold(Flaw::StoreForCas, false);
}

#[test]
#[should_panic(expected = "who has it")]
fn a_store_for_the_exchange_of_an_ended_lease() {
    handshake_models::renewal_vs_hold(Flaw::StoreForCas);
}

#[test]
#[should_panic(expected = "the holder")]
fn a_store_when_a_lease_is_given_up() {
    handshake_models::late_give_up_vs_hold(Flaw::StoreForCas);
}

#[test]
#[should_panic(expected = "is not seen")]
fn a_relaxed_load_of_a_lease() {
    handshake_models::what_the_holder_did(Flaw::RelaxedLoad, true);
}

#[test]
#[should_panic(expected = "is not seen")]
fn a_relaxed_write_of_a_lease() {
    handshake_models::what_the_holder_did(Flaw::RelaxedWrite, true);
}

#[test]
#[should_panic(expected = "is not seen")]
fn a_relaxed_load_of_a_renewed_lease() {
    handshake_models::what_the_holder_did(Flaw::RelaxedLoad, false);
}

#[test]
#[should_panic(expected = "is not seen")]
fn a_relaxed_write_of_a_renewed_lease() {
    handshake_models::what_the_holder_did(Flaw::RelaxedWrite, false);
}
