//! The models of who is attached, and of the lease.

#![allow(clippy::panic, reason = "a model fails by a panic")]

use core::cell::Cell;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use tollgate_core::{Attached, Count, HandshakeHeader, Identity, Lease, Word, Writers};

use crate::{Flaw, LoomWord, explore, race};

/// A word of a header: one that loom explores, or one on which no model depends.
#[derive(Debug)]
pub enum HeaderWord {
    /// Explored.
    Explored(LoomWord),
    /// All threads of a model are one to the system: what it holds needs no atomic.
    Plain(Cell<u64>),
}

impl Word for HeaderWord {
    fn load(&self, order: Ordering) -> u64 {
        match self {
            Self::Explored(word) => word.load(order),
            Self::Plain(word) => word.get(),
        }
    }

    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        match self {
            Self::Explored(word) => word.compare_exchange(current, new, success, failure),
            Self::Plain(word) if word.get() == current => Ok(word.replace(new)),
            Self::Plain(word) => Err(word.get()),
        }
    }

    fn store(&self, value: u64, order: Ordering) {
        match self {
            Self::Explored(word) => word.store(value, order),
            Self::Plain(word) => word.set(value),
        }
    }

    fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
        match self {
            Self::Explored(word) => word.fetch_add(n, order),
            Self::Plain(word) => word.replace(word.get().wrapping_add(n)),
        }
    }

    fn fence(&self, order: Ordering) {
        match self {
            Self::Explored(word) => word.fence(order),
            Self::Plain(_) => loom::sync::atomic::fence(order),
        }
    }
}

type Header<const N: usize> = HandshakeHeader<N, HeaderWord>;

/// Where the words of a header are: its own, and those of a seat.
const USED: usize = 1;
const SEATS: usize = 32;
const WORDS: usize = 32;
/// Of a seat, its owner, its beat, and what it counts of calls and tokens granted, now and before.
const OWNER: usize = 0;
const EXPLORED: [usize; 6] = [OWNER, 1, 2, 3, 10, 11];

/// Makes a header whose first seat has this word for its owner.
fn header_of<const N: usize>(flaw: Flaw, owner: u64) -> Arc<Header<N>> {
    let mut at = 0;
    Arc::new(Header::from_fn(|| {
        let (word, in_seat) = (at, at % WORDS);
        at += 1;
        // The common seat comes first.
        let value = if word == SEATS + WORDS + OWNER { owner } else { 0 };
        if word == USED || word >= SEATS && EXPLORED.contains(&in_seat) {
            HeaderWord::Explored(LoomWord::new(value, flaw))
        } else {
            HeaderWord::Plain(Cell::new(value))
        }
    }))
}

fn header<const N: usize>(flaw: Flaw) -> Arc<Header<N>> {
    header_of(flaw, 0)
}

/// Each of the models' processes is granted once, at a time and so many tokens that tell which it is.
fn process(number: u32) -> Identity {
    Identity::new(number, 0, 0)
}

fn call<const N: usize>(header: &Header<N>, index: Option<usize>, number: u32) {
    match index.and_then(|index| header.seat(index)) {
        Some(seat) => seat.granted(Writers::One, number.into(), number),
        None => header.common().granted(Writers::Many, number.into(), number),
    }
}

/// Attaches, is granted once, and returns its seat.
fn attach_and_call<const N: usize>(header: &Header<N>, number: u32, gone: impl Fn(Identity) -> bool) -> Option<usize> {
    let index = header.attach(process(number), gone);
    call(header, index, number);
    index
}

fn nobody_is_gone(_: Identity) -> bool {
    false
}

fn totals<const N: usize>(header: &Header<N>) -> (u64, u64) {
    let totals = header.totals();
    (totals.get(Count::GrantedCalls), totals.get(Count::GrantedTokens))
}

/// Who is there has counted its own, and no more than that.
fn assert_its_own(attached: &Attached) {
    let number = u64::from(attached.who.number());
    let (calls, tokens) = (attached.counts.get(Count::GrantedCalls), attached.counts.get(Count::GrantedTokens));
    assert!(calls <= 1 && [0, number].contains(&tokens), "{number} has counted {calls} calls, {tokens} tokens");
    let seen = attached.last_seen;
    assert!([0, number].contains(&seen), "{number} was last seen by {seen}'s clock");
}

/// Looks while others come and go.
fn look<const N: usize>(header: &Header<N>) {
    header.attached().for_each(|attached| assert_its_own(&attached));
}

/// After all, in order of the seats.
fn numbers<const N: usize>(header: &Header<N>) -> Vec<u32> {
    let seats: Vec<_> = header.attached().collect();
    for attached in &seats {
        let number = attached.who.number();
        assert_eq!(attached.counts.get(Count::GrantedTokens), number.into(), "counts of {number}");
    }
    seats.iter().map(|attached| attached.who.number()).collect()
}

/// Two come at once: never one seat for both; who gets none counts in the common one.
pub fn attach_vs_attach<const N: usize>(flaw: Flaw) {
    explore(move || {
        let header = header::<N>(flaw);
        let (one, two) = race(
            &header,
            |header| attach_and_call(header, 3, nobody_is_gone),
            |header| attach_and_call(header, 5, nobody_is_gone),
        );
        assert!(one != two || one.is_none(), "seat {one:?} for both");
        assert_eq!(one.iter().chain(&two).count(), N.min(2), "seats taken");
        assert_eq!(totals(&header), (2, 8), "totals");
        let mut there = numbers(&header);
        there.sort_unstable();
        let expected: Vec<_> = [(one, 3), (two, 5)].into_iter().filter_map(|(seat, who)| seat.map(|_| who)).collect();
        assert_eq!(there, expected, "attached");
    });
}

/// One leaves its seat after its last call, and another comes: it goes on from the counts of the one before.
pub fn leave_vs_attach(flaw: Flaw) {
    explore(move || {
        let header = header::<1>(flaw);
        let index = header.attach(process(3), nobody_is_gone);
        assert_eq!(index, Some(0));
        let (_, next) = race(
            &header,
            |header| {
                call(header, Some(0), 3);
                header.leave(0, process(3));
            },
            |header| attach_and_call(header, 5, nobody_is_gone),
        );
        assert_eq!(totals(&header), (2, 8), "totals");
        assert_eq!(numbers(&header), if next.is_some() { vec![5] } else { vec![] }, "attached");
    });
}

/// Somebody looks while one leaves and another comes: it sees neither's counts as the other's.
pub fn look_vs_leave_and_attach(flaw: Flaw) {
    explore(move || {
        let header = header::<1>(flaw);
        assert_eq!(attach_and_call(&header, 3, nobody_is_gone), Some(0));
        race(
            &header,
            |header| {
                header.leave(0, process(3));
                attach_and_call(header, 5, nobody_is_gone);
            },
            look,
        );
        assert_eq!(totals(&header), (2, 8), "totals");
        assert_eq!(numbers(&header), [5], "attached");
    });
}

/// Somebody looks while one comes to the seat of a dead one.
pub fn look_vs_attach_after_a_death(flaw: Flaw) {
    explore(move || {
        let header = header::<1>(flaw);
        assert_eq!(attach_and_call(&header, 3, nobody_is_gone), Some(0));
        race(&header, |header| attach_and_call(header, 5, |who| who == process(3)), look);
        assert_eq!(totals(&header), (2, 8), "totals");
        assert_eq!(numbers(&header), [5], "attached");
    });
}

/// Somebody looks while one leaves, another has the seat for a while, and the first one has it again.
pub fn look_vs_back_again(flaw: Flaw) {
    explore(move || {
        let header = header::<1>(flaw);
        assert_eq!(header.attach(process(3), nobody_is_gone), Some(0));
        race(
            &header,
            |header| {
                header.leave(0, process(3));
                attach_and_call(header, 5, nobody_is_gone);
                header.leave(0, process(5));
                header.attach(process(3), nobody_is_gone);
            },
            look,
        );
        assert_eq!(totals(&header), (1, 5), "totals");
    });
}

/// One dies after its last call. Two come who may have seen it: one at most gets its seat, and goes on from its counts.
pub fn attach_vs_attach_after_a_death(flaw: Flaw) {
    explore(move || {
        let header = header::<1>(flaw);
        let dead = Arc::new(AtomicU64::new(0));
        assert_eq!(header.attach(process(3), nobody_is_gone), Some(0));
        let dying = {
            let (header, dead) = (header.clone(), dead.clone());
            loom::thread::spawn(move || {
                call(&header, Some(0), 3);
                dead.store(1, Release);
            })
        };
        let next = |number| {
            let dead = dead.clone();
            move |header: &Header<1>| {
                attach_and_call(header, number, |who| who == process(3) && dead.load(Acquire) == 1)
            }
        };
        let (one, two) = race(&header, next(5), next(7));
        assert!(dying.join().is_ok());
        assert!(one.is_none() || two.is_none(), "the seat for both");
        assert_eq!(totals(&header), (3, 15), "totals");
        let there = if one.is_some() {
            5
        } else if two.is_some() {
            7
        } else {
            3
        };
        assert_eq!(numbers(&header), [there], "attached");
    });
}

/// One died between its two steps. Two come: one gets the seat, and nobody sees the dead one in it.
pub fn died_while_it_attached(flaw: Flaw) {
    explore(move || {
        // The number is in the lowest bits; the seat is not ready.
        let header = header_of::<1>(flaw, 3);
        let gone = |who| who == process(3);
        let (one, two) = race(
            &header,
            move |header| attach_and_call(header, 5, gone),
            move |header| attach_and_call(header, 7, gone),
        );
        assert!(one.is_some() != two.is_some(), "seats {one:?} and {two:?}");
        assert_eq!(totals(&header), (2, 12), "totals");
        assert_eq!(numbers(&header), [if one.is_some() { 5 } else { 7 }], "attached");
    });
}

/// Somebody frees the seat of a dead one while another comes: who got it keeps it, and else it is free.
pub fn free_vs_attach(flaw: Flaw) {
    explore(move || {
        let header = header::<1>(flaw);
        assert_eq!(attach_and_call(&header, 3, nobody_is_gone), Some(0));
        let gone = |who| who == process(3);
        let (_, next) = race(&header, move |header| header.free(gone), move |header| attach_and_call(header, 5, gone));
        assert_eq!(totals(&header), (2, 8), "totals");
        assert_eq!(numbers(&header), if next.is_some() { vec![5] } else { vec![] }, "attached");
        assert_eq!(attach_and_call(&header, 7, nobody_is_gone).is_some(), next.is_none(), "the next one's seat");
        assert_eq!(totals(&header), (3, 15), "totals");
    });
}

/// One has seen the death and frees the seat; who comes then has not seen it, but goes on from the dead one's counts.
pub fn freed_for_another(flaw: Flaw) {
    explore(move || {
        let header = header::<1>(flaw);
        let dead = Arc::new(AtomicU64::new(0));
        assert_eq!(header.attach(process(3), nobody_is_gone), Some(0));
        let dying = {
            let (header, dead) = (header.clone(), dead.clone());
            loom::thread::spawn(move || {
                call(&header, Some(0), 3);
                dead.store(1, Release);
            })
        };
        let (_, next) = race(
            &header,
            move |header| header.free(|who| who == process(3) && dead.load(Acquire) == 1),
            |header| attach_and_call(header, 5, nobody_is_gone),
        );
        assert!(dying.join().is_ok());
        assert_eq!(totals(&header), (2, 8), "totals");
        if next.is_some() {
            assert_eq!(numbers(&header), [5], "attached");
        }
    });
}

fn lease(flaw: Flaw) -> Arc<Lease<LoomWord>> {
    Arc::new(Lease::over(LoomWord::new(0, flaw)))
}

const SECOND: u64 = 1_000_000;

/// Two want a lease that is free, or that has ended: one has it.
pub fn hold_vs_hold(flaw: Flaw, ended: bool) {
    explore(move || {
        let lease = lease(flaw);
        if ended {
            assert!(lease.hold(0, SECOND, 3));
        }
        let now = 2 * SECOND;
        let (one, two) = race(
            &lease,
            move |lease| lease.hold(now, now + SECOND, 5),
            move |lease| lease.hold(now + 1, now + SECOND, 7),
        );
        assert!(one != two, "who has it: {one}, {two}");
        assert_eq!(lease.holder(now), Some(if one { 5 } else { 7 }), "the holder");
    });
}

/// The holder renews a lease that has just ended, while another wants it: one has it.
pub fn renewal_vs_hold(flaw: Flaw) {
    explore(move || {
        let lease = lease(flaw);
        assert!(lease.hold(0, SECOND, 3));
        let now = 2 * SECOND;
        let (renewed, other) =
            race(&lease, move |lease| lease.hold(now, now + SECOND, 3), move |lease| lease.hold(now, now + SECOND, 5));
        assert!(renewed != other, "who has it: {renewed}, {other}");
        assert_eq!(lease.holder(now), Some(if renewed { 3 } else { 5 }), "the holder");
    });
}

/// A holder gives up what had ended, while another takes it: the other keeps it.
pub fn late_give_up_vs_hold(flaw: Flaw) {
    explore(move || {
        let lease = lease(flaw);
        assert!(lease.hold(0, SECOND, 3));
        let now = 2 * SECOND;
        let (_, other) = race(&lease, |lease| lease.give_up(3), move |lease| lease.hold(now, now + SECOND, 5));
        assert!(other, "nobody else wants it");
        assert_eq!(lease.holder(now), Some(5), "the holder");
    });
}

/// Who holds it sees what the holder before did until it gave up, or last renewed it.
pub fn what_the_holder_did(flaw: Flaw, gives_up: bool) {
    explore(move || {
        let (lease, done) = (lease(flaw), Arc::new(AtomicU64::new(0)));
        assert!(lease.hold(0, SECOND, 3));
        let did = done.clone();
        let seen = race(
            &lease,
            move |lease| {
                did.store(1, Relaxed);
                if gives_up {
                    lease.give_up(3);
                } else {
                    // The other may have it by now.
                    lease.hold(0, 2 * SECOND, 3);
                }
            },
            move |lease| {
                let (earlier, now) = if gives_up { (0, 0) } else { (2 * SECOND - 1, 3 * SECOND) };
                // Renewed until then, it has ended now.
                let over = lease.holder(earlier).is_some() != gives_up;
                (lease.hold(now, now + SECOND, 5) && over).then(|| done.load(Relaxed))
            },
        );
        assert!(seen.1 != Some(0), "what the holder did is not seen");
    });
}
