//! The ring of events, one thread: what is read, and what is missed.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

use core::cell::Cell;
use core::sync::atomic::Ordering;

use tollgate_core::{Observation, ObservationRing, Observed, Word};

/// Miri is slow.
const BURSTS: usize = if cfg!(miri) { 50 } else { 20_000 };

fn event(micros: u32, kind: u8, count: u16) -> Option<Observed> {
    Some(Observed::Event(Observation { kind, count, micros }))
}

#[test]
fn nobody_watches_and_nothing_is_written() {
    let ring: ObservationRing<2> = ObservationRing::new();
    ring.push(1, 1, 1);
    let mut first = ring.watch().unwrap();
    assert_eq!(first.read(), None);
    ring.push(2, 2, 2);
    let mut second = ring.watch().unwrap();
    ring.push(3, 3, 3);
    assert_eq!((first.read(), first.read(), first.read()), (event(2, 2, 2), event(3, 3, 3), None));
    assert_eq!((second.read(), second.read()), (event(3, 3, 3), None));
    drop(first);
    ring.push(4, 4, 4);
    assert_eq!(second.read(), event(4, 4, 4));
    drop(second);
    ring.push(5, 5, 5);
    assert_eq!(ring.watch().unwrap().read(), None);
}

#[test]
fn an_event_keeps_what_fits() {
    let ring: ObservationRing<1> = ObservationRing::new();
    let mut watcher = ring.watch().unwrap();
    for (now, kind, count, expected) in [
        (0, 0, 0, event(0, 0, 0)),
        (u64::MAX, 15, u32::MAX, event(u32::MAX, 15, u16::MAX)),
        ((1 << 32) + 7, 16 + 3, 65_536, event(7, 3, u16::MAX)),
        (1 << 32, u8::MAX, 65_534, event(0, 15, 65_534)),
    ] {
        ring.push(now, kind, count);
        assert_eq!(watcher.read(), expected);
    }
}

/// However many there were, each is read or missed, in order, over many laps.
#[test]
fn who_comes_late_is_told_how_many_were_missed() {
    fn check<const N: usize>() {
        let ring: ObservationRing<N> = ObservationRing::new();
        let mut watcher = ring.watch().unwrap();
        let (mut written, mut next) = (0_u32, 0);
        for burst in (0..2 * N + 3).cycle().take(BURSTS) {
            for _ in 0..burst {
                ring.push(written.into(), 1, written);
                written += 1;
            }
            while let Some(seen) = watcher.read() {
                match seen {
                    Observed::Event(seen) => {
                        assert_eq!(seen.micros, next);
                        next += 1;
                    }
                    Observed::Missed(count) => next += u32::try_from(count).unwrap(),
                }
            }
            assert_eq!(next, written);
            assert!(burst <= N || watcher.read().is_none());
        }
    }
    check::<1>();
    check::<3>();
    check::<8>();
}

#[test]
fn so_many_may_watch() {
    let ring: ObservationRing<1> = ObservationRing::new();
    let mut watchers: Vec<_> = (0..255).map(|_| ring.watch().unwrap()).collect();
    assert!(ring.watch().is_none());
    ring.push(1, 1, 1);
    assert!(watchers.iter_mut().all(|watcher| watcher.read() == event(1, 1, 1)));
    watchers.pop();
    assert!(ring.watch().is_some());
}

/// A word that is changed by somebody else, once, before an exchange.
struct Late {
    value: Cell<u64>,
    before: Cell<Option<u64>>,
}

impl Word for Late {
    fn load(&self, _: Ordering) -> u64 {
        self.value.get()
    }

    fn compare_exchange(&self, current: u64, new: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        if let Some(other) = self.before.take() {
            self.value.set(other);
        }
        let seen = self.value.get();
        if seen == current {
            self.value.set(new);
            Ok(seen)
        } else {
            Err(seen)
        }
    }
}

/// A writer finds that its slot has been written by somebody else: of a lap before, it writes over it; of a lap after, it
/// does not.
#[test]
fn writers_of_other_laps() {
    let zero = |value| Late { value: Cell::new(value), before: Cell::new(None) };
    for (found, read) in [
        // Lap 1 and lap 3, where the lap is 2; 4095 and 2048, which is half of all ahead.
        (1, event(9, 1, 1)),
        (3, Some(Observed::Missed(1))),
        (4095, event(9, 1, 1)),
        (2048, Some(Observed::Missed(1))),
        (2049, event(9, 1, 1)),
    ] {
        let (head, slot) = (zero(1 << 8), zero(1));
        let ring = ObservationRing::over(&head, [&slot]);
        let mut watcher = ring.watch().unwrap();
        slot.before.set(Some(found));
        ring.push(9, 1, 1);
        assert_eq!(watcher.read(), read, "lap {found}");
        assert_eq!(watcher.read(), None);
    }
}

/// A writer that was given a place and has not written yet, and one that never does.
#[test]
fn a_writer_that_is_held_up() {
    let (head, slots) = (Late { value: Cell::new(0), before: Cell::new(None) }, [0; 2].map(Cell::new));
    let slots = slots.map(|value| Late { value, before: Cell::new(None) });
    let ring = ObservationRing::over(&head, [&slots[0], &slots[1]]);
    let mut watcher = ring.watch().unwrap();
    // Its place is taken.
    head.value.set(head.value.get() + (1 << 8));
    ring.push(1, 1, 1);
    assert_eq!(watcher.read(), None, "it may still come");
    ring.push(2, 2, 2);
    assert_eq!(watcher.read(), Some(Observed::Missed(1)));
    assert_eq!((watcher.read(), watcher.read(), watcher.read()), (event(1, 1, 1), event(2, 2, 2), None));
}
