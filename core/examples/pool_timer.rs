//! A pool whose owner refills it from a timer, for two consumers: static, without a heap.
//!
//! The timer may be late or early: the owner credits the time that has passed, not the ticks it has seen. Run it with
//! `cargo run -p tollgate-core --example pool_timer`.

#![allow(clippy::arithmetic_side_effects, reason = "an example of small numbers")]

use tollgate_core::{AtomicTokenBucket, Quota, Refiller, quota};

/// 64 kB/s of radio time, at most 4 kB of it saved up.
static BYTES: AtomicTokenBucket = AtomicTokenBucket::new(4096);
const RATE: Quota = quota!(Quota::per_second(65_536));

/// Sends a packet of up to `length` bytes, if the pool has them; returns how many went out.
fn send(length: u64) -> u64 {
    let Some(mut permit) = BYTES.claim_permit(length) else { return 0 };
    // The radio takes what it can; the rest goes back when the permit is dropped.
    let sent = permit.remaining().min(200);
    if permit.spend(sent).is_ok() { sent } else { 0 }
}

fn main() {
    let mut owner = Refiller::new(RATE, 0);
    let mut sent = 0;
    BYTES.drain();
    // A timer of 1 ms whose interrupt comes up to half a millisecond early or late.
    for tick in 1..=1000_u64 {
        let jitter = tick * 7919 % 1000;
        owner.refill_at(tick * 1000 - 500 + jitter, &BYTES);
        sent += send(150) + send(250);
    }
    owner.refill_at(1_000_500, &BYTES);
    println!("{sent} bytes sent in a second, {} left", BYTES.available());
    // The rate times a second and half a millisecond: nothing was lost to jitter, and nothing minted.
    assert_eq!(sent + BYTES.available(), 65_568);
}
