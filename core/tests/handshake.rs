//! Who is attached and what was counted, one thread; and the lease.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "a test")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use tollgate_core::{Count, Counts, DefaultWord, HandshakeHeader, Identity, Lease, Writers};

const ALL: [Count; 8] = [
    Count::GrantedCalls,
    Count::GrantedTokens,
    Count::RefusedCalls,
    Count::ContendedCalls,
    Count::Ok,
    Count::Overload,
    Count::RefundedTokens,
    Count::WaitedMicros,
];

fn nobody_is_gone(_: Identity) -> bool {
    false
}

fn all(counts: &Counts) -> [u64; 8] {
    ALL.map(|count| counts.get(count))
}

#[test]
fn an_identity_keeps_what_fits() {
    let largest = Identity::new((1 << 22) - 1, (1 << 25) - 1, (1 << 16) - 1);
    assert_eq!(Identity::new(u32::MAX, u64::MAX, u32::MAX), largest);
    assert_eq!(largest.number(), (1 << 22) - 1);
    assert_eq!(Identity::new(1 << 22, 1 << 25, 1 << 16), Identity::new(0, 0, 0));
    assert_eq!(Identity::new(7, 1 << 24, 1 << 15).number(), 7);
}

#[test]
fn another_number_start_or_space_is_another_identity() {
    let one = Identity::new(7, 8, 9);
    for bit in 0..22 {
        assert_ne!(Identity::new(7 ^ (1 << bit), 8, 9), one);
    }
    for bit in 0..25 {
        assert_ne!(Identity::new(7, 8 ^ (1 << bit), 9), one);
    }
    for bit in 0..16 {
        let other = Identity::new(7, 8, 9 ^ (1 << bit));
        assert_ne!(other, one);
        assert!(!other.is_in_the_space_of(one) && !one.is_in_the_space_of(other));
    }
    assert!(Identity::new(u32::MAX, u64::MAX, 9).is_in_the_space_of(one));
    assert!(Identity::new(0, 0, 9 + (1 << 16)).is_in_the_space_of(one), "only the low bits are kept");
}

/// Even one of which all fields are zero takes the seat.
#[test]
fn nobody_is_number_zero() {
    let header: HandshakeHeader<1> = HandshakeHeader::new();
    let zero = Identity::new(0, 0, 0);
    assert_eq!(header.attach(zero, nobody_is_gone), Some(0));
    assert_eq!(header.attach(Identity::new(1, 0, 0), nobody_is_gone), None);
    assert_eq!(header.attached().map(|attached| attached.who).collect::<Vec<_>>(), [zero]);
    header.leave(0, zero);
    assert_eq!(header.attached().count(), 0);
    assert_eq!(header.attach(Identity::new(1, 0, 0), nobody_is_gone), Some(0));
}

#[test]
fn a_wait_is_of_the_first_class_whose_bound_is_above_it() {
    for by in [Writers::One, Writers::Many] {
        let mut below = 0;
        for class in 0..14 {
            let header: HandshakeHeader<1> = HandshakeHeader::new();
            let index = header.attach(Identity::new(1, 0, 0), nobody_is_gone).unwrap();
            let (seat, bound) = (header.seat(index).unwrap(), header.waits().classes().nth(class).unwrap().1);
            assert_eq!(bound, if class == 13 { None } else { Some(1 << (8 + 2 * class)) });
            let last = bound.map_or(u64::MAX, |bound| bound - 1);
            seat.waited(by, below);
            seat.waited(by, last);
            header.common().waited(by, last);
            let counted: Vec<_> = header.waits().classes().map(|(calls, _)| calls).collect();
            assert_eq!(counted.len(), 14);
            assert!(counted.iter().enumerate().all(|(at, calls)| *calls == if at == class { 3 } else { 0 }));
            let micros = below.wrapping_add(last).wrapping_add(last);
            assert_eq!(header.totals().get(Count::WaitedMicros), micros);
            below = last.wrapping_add(1);
        }
    }
}

#[test]
fn who_finds_no_seat_counts_in_the_common_one() {
    let header: HandshakeHeader<2> = HandshakeHeader::new();
    let [one, two, three] = [1, 2, 3].map(|number| Identity::new(number, 0, 0));
    assert_eq!(header.attach(one, nobody_is_gone), Some(0));
    assert_eq!(header.attach(two, nobody_is_gone), Some(1));
    assert_eq!(header.attach(three, nobody_is_gone), None);
    assert!(header.seat(2).is_none());
    header.common().granted(Writers::Many, 5, 4);
    header.common().refused(Writers::Many, 6);
    assert_eq!(all(&header.totals()), [1, 4, 1, 0, 0, 0, 0, 0]);
    assert!(header.attached().all(|attached| attached.counts == Counts::default()));
    // Somebody else's seat is not given back, nor one that there is not.
    header.leave(0, two);
    header.leave(2, two);
    assert_eq!(header.attach(three, nobody_is_gone), None);
    assert_eq!(header.attach(three, |who| who == two), Some(1));
    assert_eq!(header.attached().map(|attached| attached.who).collect::<Vec<_>>(), [one, three]);
    header.free(|who| who == one);
    assert_eq!(header.attached().map(|attached| attached.who).collect::<Vec<_>>(), [three]);
}

#[test]
fn a_free_seat_is_taken_before_a_dead_ones() {
    let header: HandshakeHeader<2> = HandshakeHeader::new();
    let dead = Identity::new(1, 0, 0);
    assert_eq!(header.attach(dead, nobody_is_gone), Some(0));
    assert_eq!(header.attach(Identity::new(2, 0, 0), |_| true), Some(1));
}

/// Its number may mean another process by now: it is the start that tells.
#[test]
fn a_later_process_of_the_same_number_is_another() {
    let header: HandshakeHeader<1> = HandshakeHeader::new();
    let (before, now) = (Identity::new(1, 100, 0), Identity::new(1, 200, 0));
    assert_eq!(header.attach(before, nobody_is_gone), Some(0));
    header.leave(0, now);
    assert_eq!(header.attach(now, |who| who == before), Some(0));
    header.leave(0, before);
    assert_eq!(header.attached().map(|attached| attached.who).collect::<Vec<_>>(), [now]);
}

#[test]
fn who_has_just_come_was_never_seen() {
    let header: HandshakeHeader<1> = HandshakeHeader::new();
    let [one, two] = [1, 2].map(|number| Identity::new(number, 0, 0));
    header.attach(one, nobody_is_gone).unwrap();
    header.seat(0).unwrap().refused(Writers::One, 77);
    assert_eq!(header.attached().next().unwrap().last_seen, 77);
    header.leave(0, one);
    header.attach(two, nobody_is_gone).unwrap();
    assert_eq!(header.attached().next().unwrap().last_seen, 0, "not when another one called");
    header.seat(0).unwrap().beat(78);
    assert_eq!(header.attached().next().unwrap().last_seen, 78);
}

/// Dead between its two steps: its number is in the lowest bits of the seat's word, which is not ready.
#[test]
fn a_seat_that_was_never_ready() {
    let mut words = 0;
    let header: HandshakeHeader<1> = HandshakeHeader::from_fn(|| {
        words += 1;
        DefaultWord::new(if words == 65 { 7 } else { 0 })
    });
    assert_eq!(words, 96, "32 for itself, 32 for each seat");
    let dead = Identity::new(7, 0, 0);
    assert_eq!(header.attached().count(), 0);
    assert_eq!(header.attach(Identity::new(8, 0, 0), nobody_is_gone), None);
    assert_eq!(header.attach(Identity::new(8, 0, 0), |who| who == dead), Some(0));
    assert_eq!(header.attached().map(|attached| attached.who.number()).collect::<Vec<_>>(), [8]);
}

#[test]
fn counts_that_wrap_are_still_subtracted() {
    let header: HandshakeHeader<1> = HandshakeHeader::new();
    let who = Identity::new(1, 0, 0);
    header.attach(who, nobody_is_gone).unwrap();
    header.seat(0).unwrap().add(Writers::One, Count::WaitedMicros, u64::MAX - 1);
    header.leave(0, who);
    let before = header.totals();
    header.attach(who, nobody_is_gone).unwrap();
    header.seat(0).unwrap().add(Writers::Many, Count::WaitedMicros, 5);
    assert_eq!(header.attached().next().unwrap().counts.get(Count::WaitedMicros), 5);
    assert_eq!(header.totals().since(&before).get(Count::WaitedMicros), 5);
    assert_eq!(before.and(&header.totals().since(&before)), header.totals());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Attach,
    Leave(usize),
    Die(usize),
    Free,
    Granted(usize, u32),
    Refused(usize),
    Add(usize, usize, u32),
}

fn step() -> impl Strategy<Value = Step> {
    // The fourth is the common seat.
    let seat = 0..4_usize;
    prop_oneof![
        3 => Just(Step::Attach),
        1 => seat.clone().prop_map(Step::Leave),
        1 => seat.clone().prop_map(Step::Die),
        1 => Just(Step::Free),
        4 => (seat.clone(), any::<u32>()).prop_map(|(seat, tokens)| Step::Granted(seat, tokens)),
        2 => seat.clone().prop_map(Step::Refused),
        2 => (seat, 0..8_usize, any::<u32>()).prop_map(|(seat, count, n)| Step::Add(seat, count, n)),
    ]
}

/// Who has a seat, as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Owner {
    number: u32,
    dead: bool,
    last_seen: u64,
    counts: [u64; 8],
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 64 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// However they come, go and die: the totals are all that was counted, and each has its own.
    #[test]
    fn every_count_is_somebodys(steps in prop::collection::vec(step(), 0..if cfg!(miri) { 50 } else { 2_000 })) {
        let header: HandshakeHeader<3> = HandshakeHeader::new();
        let (mut owners, mut totals, mut next, mut now) = (BTreeMap::<usize, Owner>::new(), [0_u64; 8], 0, 0);
        for step in steps {
            now += 1;
            let gone = |owners: &BTreeMap<usize, Owner>, who: Identity| {
                owners.values().any(|owner| owner.dead && owner.number == who.number())
            };
            // What it adds, and where.
            let mut added = [0; 8];
            let mut at = None;
            match step {
                Step::Attach => {
                    next += 1;
                    let free = (0..3).find(|seat| !owners.contains_key(seat));
                    let expected = free.or_else(|| (0..3).find(|seat| owners[seat].dead));
                    prop_assert_eq!(header.attach(Identity::new(next, 5, 0), |who| gone(&owners, who)), expected);
                    if let Some(seat) = expected {
                        owners.insert(seat, Owner { number: next, ..Owner::default() });
                    }
                }
                Step::Leave(seat) => {
                    if let Some(owner) = owners.get(&seat).copied().filter(|owner| !owner.dead) {
                        header.leave(seat, Identity::new(owner.number, 5, 0));
                        owners.remove(&seat);
                    }
                }
                Step::Die(seat) => {
                    if let Some(owner) = owners.get_mut(&seat) {
                        owner.dead = true;
                    }
                }
                Step::Free => {
                    header.free(|who| gone(&owners, who));
                    owners.retain(|_, owner| !owner.dead);
                }
                Step::Granted(seat, tokens) => (at, added[0], added[1]) = (Some(seat), 1, tokens.into()),
                Step::Refused(seat) => (at, added[2]) = (Some(seat), 1),
                Step::Add(seat, count, n) => (at, added[count]) = (Some(seat), n.into()),
            }
            let owner = at.and_then(|seat| owners.get_mut(&seat));
            // The dead don't count, and nobody in a seat that he has not.
            if at == Some(3) || owner.as_ref().is_some_and(|owner| !owner.dead) {
                let seat = at.and_then(|seat| header.seat(seat)).unwrap_or(header.common());
                let by = if owner.is_none() || now % 2 == 0 { Writers::Many } else { Writers::One };
                match step {
                    Step::Granted(_, tokens) => seat.granted(by, now, tokens),
                    Step::Refused(_) => seat.refused(by, now),
                    Step::Add(_, count, n) => seat.add(by, ALL[count], n.into()),
                    _ => {}
                }
                totals = core::array::from_fn(|count| totals[count] + added[count]);
                if let Some(owner) = owner {
                    owner.counts = core::array::from_fn(|count| owner.counts[count] + added[count]);
                    if !matches!(step, Step::Add(..)) {
                        owner.last_seen = now;
                    }
                }
            }
            prop_assert_eq!(all(&header.totals()), totals);
            let there: Vec<_> = header
                .attached()
                .map(|attached| (attached.who.number(), attached.last_seen, all(&attached.counts)))
                .collect();
            let expected: Vec<_> =
                owners.values().map(|owner| (owner.number, owner.last_seen, owner.counts)).collect();
            prop_assert_eq!(there, expected);
        }
    }

    /// Against a holder and an end as two variables.
    #[test]
    fn a_lease_is_one_holders_until_its_end(
        steps in prop::collection::vec((0..3_000_u64, 0..5_000_u64, 0..3_u32, any::<bool>()), 0..if cfg!(miri) { 50 } else { 1_000 }),
        start in prop_oneof![Just(0), 0..1_u64 << 49],
    ) {
        let lease = Lease::new();
        let (mut now, mut held) = (start, None);
        for (later, long, holder, holds) in steps {
            now += later;
            // To the next unit.
            held = held.filter(|(_, end): &(u32, u64)| now < end.next_multiple_of(1024));
            prop_assert_eq!(lease.holder(now), held.map(|(holder, _)| holder));
            if holds {
                let free = held.is_none_or(|(other, _)| other == holder);
                prop_assert_eq!(lease.hold(now, now + long, holder), free);
                if free {
                    held = Some((holder, now + long));
                }
            } else {
                lease.give_up(holder);
                held = held.filter(|(other, _)| *other != holder);
            }
        }
    }

    #[test]
    fn no_time_panics(now: u64, until: u64, after: u64, holder: u32) {
        let lease = Lease::new();
        prop_assert!(lease.hold(now, until, holder), "nobody had it");
        let later = now.saturating_add(after);
        let end = until.min(now.saturating_add(LONGEST)).min(LATEST);
        if let Some(other) = lease.holder(later) {
            prop_assert_eq!(other, holder & 0xff_ffff);
            prop_assert!(later < end.saturating_add(1023));
        } else {
            prop_assert!(later.saturating_add(1024) >= end);
        }
        lease.give_up(holder);
        prop_assert_eq!(lease.holder(later), None);
    }

    /// Whatever somebody writes there, it is nobody's for long.
    #[test]
    fn any_bits_are_a_lease_of_an_hour_or_so(word: u64, now in 0..1_u64 << 49) {
        let lease = Lease::over(DefaultWord::new(word));
        let later = now + LONGEST + 1024;
        prop_assert!(lease.hold(now, now + 1, 7) || lease.hold(later, later + 1, 7));
    }
}

/// 2^32 microseconds, and 34 years.
const LONGEST: u64 = 1 << 32;
const LATEST: u64 = ((1 << 40) - 1) << 10;

#[test]
fn a_lease_ends_after_an_hour_or_so_at_the_latest() {
    for (now, end) in [(0, LONGEST), (5 * 1024, LONGEST + 5 * 1024), (LATEST - 1024, LATEST)] {
        for until in [end, end + 1, 1 << 50, 1 << 63, u64::MAX] {
            let lease = Lease::new();
            assert!(lease.hold(now, until, 7));
            assert_eq!(lease.holder(end - 1), Some(7));
            assert!(!lease.hold(end - 1, u64::MAX, 8));
            assert_eq!(lease.holder(end), None);
            assert_eq!(lease.holder(u64::MAX), None);
        }
    }
    let lease = Lease::new();
    assert!(lease.hold(u64::MAX, u64::MAX, 8), "nobody has it at such a time");
    assert_eq!(lease.holder(u64::MAX), None);
}

#[test]
fn a_lease_can_be_ended_for_whoever_has_it() {
    let lease = Lease::new();
    assert!(lease.hold(0, 5_000, 7));
    lease.end();
    assert_eq!(lease.holder(0), None);
    assert!(lease.hold(0, 5_000, 8));
}

#[test]
fn a_lease_ends_up_to_1024_micros_later() {
    for (until, end) in [(0, 0), (1, 1024), (1023, 1024), (1024, 1024), (1025, 2048)] {
        let lease = Lease::new();
        assert!(lease.hold(0, until, 7));
        assert_eq!(lease.holder(end), None);
        if let Some(before) = end.checked_sub(1) {
            assert_eq!(lease.holder(before), Some(7));
            assert!(!lease.hold(before, u64::MAX, 8));
        }
        assert!(lease.hold(end, end + 1024, 8));
    }
}

#[test]
fn holders_whose_low_24_bits_are_equal_are_one() {
    let lease = Lease::new();
    assert!(lease.hold(0, 5_000, 7));
    assert!(lease.hold(1, 6_000, 7 + (1 << 24)));
    assert_eq!(lease.holder(5_500), Some(7));
    assert!(!lease.hold(1, 6_000, 7 + (1 << 23)));
    lease.give_up(7 + (1 << 23));
    assert_eq!(lease.holder(1), Some(7));
    lease.give_up(7 + (1 << 31));
    assert_eq!(lease.holder(1), None);
}

#[test]
fn holder_zero_is_somebody() {
    let lease = Lease::new();
    assert_eq!(lease.holder(0), None);
    assert!(lease.hold(0, 5_000, 0));
    assert_eq!(lease.holder(0), Some(0));
    assert!(!lease.hold(0, 5_000, 1));
    lease.give_up(0);
    assert!(lease.hold(0, 5_000, 1));
}
