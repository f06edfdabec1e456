//! Every model, with words as they should be.

use tollgate_loom_tests::{Flaw, Flaws, handshake_models, models, pool_models, ring_models};

#[test]
fn acquire_vs_acquire() {
    models::acquire_vs_acquire(Flaws::NONE);
}

#[test]
fn acquire_vs_time() {
    models::acquire_vs_time(Flaws::NONE);
}

#[test]
fn refund_vs_acquire() {
    models::refund_vs_acquire(Flaws::NONE);
}

#[test]
fn refund_vs_refund() {
    models::refund_vs_refund(Flaws::NONE);
}

/// Within the turn, at its ends, and turns later; by one clock, and by two that differ.
#[test]
fn long_idle() {
    for idle in [32, 40, 63, 64, 65, 70, 130] {
        for apart in [0, 1, 4] {
            models::long_idle(Flaws::NONE, 0, idle, apart);
        }
    }
}

/// Nearly full, so that the stamp may be anywhere below the time of the call.
#[test]
fn long_idle_of_a_full_bucket() {
    for idle in [32, 63, 64, 65, 130] {
        for apart in [0, 1] {
            models::long_idle(Flaws::NONE, 4, idle, apart);
        }
    }
}

/// One reading is older than the jump that the other one makes, by more than a quarter of a turn.
#[test]
fn long_idle_and_a_late_reading() {
    for (idle, apart) in [(32, 22), (32, 32), (40, 20), (47, 47)] {
        models::long_idle(Flaws::NONE, 4, idle, apart);
    }
}

#[test]
fn settled_by_a_dead_thread() {
    for idle in [40, 63, 64, 70, 128, 130] {
        models::settled_by_a_dead_thread(Flaws::NONE, idle);
    }
}

#[test]
fn look_vs_long_idle() {
    for idle in [32, 63, 64, 70, 130] {
        models::look_vs_long_idle(Flaws::NONE, idle);
    }
}

#[test]
fn look_vs_raise() {
    models::look_vs_raise(Flaws::NONE);
}

#[test]
fn late_raise() {
    models::late_raise(Flaws::NONE);
}

#[test]
fn raise_vs_jump() {
    models::raise_vs_jump(Flaws::NONE);
}

#[test]
fn late_raise_for_a_debt() {
    models::late_raise_for_a_debt(Flaws::NONE);
}

#[test]
fn late_settler() {
    models::late_settler(Flaws::NONE);
}

#[test]
fn twice_after_long_idle() {
    for idle in [32, 40, 48, 60, 63, 64, 70, 124, 128] {
        models::twice_after_long_idle(Flaws::NONE, idle);
    }
}

#[test]
fn reset_vs_acquire() {
    models::reset_vs_acquire(Flaws::NONE);
}

#[test]
fn acquire_up_to_vs_acquire() {
    models::acquire_up_to_vs_acquire(Flaws::NONE);
}

#[test]
fn permit_drop_vs_acquire() {
    for idle in [16, 40, 64, 70] {
        models::permit_drop_vs_acquire(Flaws::NONE, idle);
    }
}

#[test]
fn claim_vs_claim() {
    pool_models::claim_vs_claim(Flaw::None);
}

#[test]
fn claim_vs_refill() {
    pool_models::claim_vs_refill(Flaw::None);
}

#[test]
fn refill_vs_refill() {
    pool_models::refill_vs_refill(Flaw::None);
}

#[test]
fn drain_vs_claim() {
    pool_models::drain_vs_claim(Flaw::None);
}

#[test]
fn drain_vs_refill() {
    pool_models::drain_vs_refill(Flaw::None);
}

#[test]
fn set_capacity_vs_claim() {
    pool_models::set_capacity_vs_claim(Flaw::None);
}

#[test]
fn set_capacity_vs_refill() {
    pool_models::set_capacity_vs_refill(Flaw::None);
}

#[test]
fn shrink_vs_claim_of_all() {
    pool_models::shrink_vs_claim_of_all(Flaw::None);
}

#[test]
fn grow_vs_claim() {
    pool_models::grow_vs_claim(Flaw::None);
}

#[test]
fn shrink_vs_grow_and_refill() {
    pool_models::shrink_vs_grow_and_refill(Flaw::None);
}

#[test]
fn permit_drop_vs_claim() {
    pool_models::permit_drop_vs_claim(Flaw::None);
}

#[test]
fn zero_word_vs_zero_word() {
    pool_models::zero_word_vs_zero_word(Flaw::None);
}

#[test]
fn one_word_at_its_wrap() {
    pool_models::one_word_at_its_wrap(Flaw::None);
}

#[test]
fn counter_at_its_wrap() {
    pool_models::counter_at_its_wrap(Flaw::None);
}

#[test]
fn hand_over_vs_acquire() {
    models::hand_over_vs_acquire(Flaws::NONE);
}

#[test]
fn hand_over_vs_refund() {
    models::hand_over_vs_refund(Flaws::NONE);
}

#[test]
fn hand_over_vs_long_idle() {
    for idle in [12, 32, 63, 64, 70, 130] {
        models::hand_over_vs_long_idle(Flaws::NONE, idle);
    }
}

#[test]
fn overdraw_vs_acquire() {
    models::overdraw_vs_acquire(Flaws::NONE);
}

#[test]
fn ring_writers_vs_reader() {
    ring_models::writers_vs_reader::<1>(Flaw::None, Flaw::None);
    ring_models::writers_vs_reader::<2>(Flaw::None, Flaw::None);
    ring_models::writers_vs_reader::<4>(Flaw::None, Flaw::None);
}

#[test]
fn ring_watcher_vs_watcher() {
    ring_models::watcher_vs_watcher(Flaw::None, Flaw::None);
}

#[test]
fn attach_vs_attach() {
    handshake_models::attach_vs_attach::<0>(Flaw::None);
    handshake_models::attach_vs_attach::<1>(Flaw::None);
    handshake_models::attach_vs_attach::<2>(Flaw::None);
}

#[test]
fn leave_vs_attach() {
    handshake_models::leave_vs_attach(Flaw::None);
}

#[test]
fn look_vs_leave_and_attach() {
    handshake_models::look_vs_leave_and_attach(Flaw::None);
}

#[test]
fn look_vs_attach_after_a_death() {
    handshake_models::look_vs_attach_after_a_death(Flaw::None);
}

#[test]
fn look_vs_back_again() {
    handshake_models::look_vs_back_again(Flaw::None);
}

#[test]
fn attach_vs_attach_after_a_death() {
    handshake_models::attach_vs_attach_after_a_death(Flaw::None);
}

#[test]
fn died_while_it_attached() {
    handshake_models::died_while_it_attached(Flaw::None);
}

#[test]
fn free_vs_attach() {
    handshake_models::free_vs_attach(Flaw::None);
}

#[test]
fn freed_for_another() {
    handshake_models::freed_for_another(Flaw::None);
}

#[test]
fn lease_hold_vs_hold() {
    handshake_models::hold_vs_hold(Flaw::None, false);
    handshake_models::hold_vs_hold(Flaw::None, true);
}

#[test]
fn lease_renewal_vs_hold() {
    handshake_models::renewal_vs_hold(Flaw::None);
}

#[test]
fn lease_late_give_up_vs_hold() {
    handshake_models::late_give_up_vs_hold(Flaw::None);
}

#[test]
fn lease_what_the_holder_did() {
    handshake_models::what_the_holder_did(Flaw::None, true);
    handshake_models::what_the_holder_did(Flaw::None, false);
}
