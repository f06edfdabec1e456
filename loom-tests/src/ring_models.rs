//! The models of the ring of events.

#![allow(clippy::panic, reason = "a model fails by a panic")]

use loom::sync::Arc;
use tollgate_core::{Observation, ObservationRing, Observed, Watcher};

use crate::{Flaw, LoomWord, explore};

type Ring<const N: usize> = ObservationRing<N, LoomWord>;

fn ring<const N: usize>(head: Flaw, slot: Flaw) -> Arc<Ring<N>> {
    let slots = [(); N].map(|()| LoomWord::new(0, slot));
    Arc::new(ObservationRing::over(LoomWord::new(0, head), slots))
}

/// Each field of an event tells which it is, so that one of two halves is none.
fn push<const N: usize>(ring: &Ring<N>, id: u8) {
    ring.push(id.into(), id, id.into());
}

/// What a watcher has read.
#[derive(Default)]
struct Seen {
    events: Vec<u8>,
    missed: u64,
}

impl Seen {
    fn read<const N: usize>(&mut self, watcher: &mut Watcher<'_, N, LoomWord>) -> bool {
        match watcher.read() {
            None => return false,
            Some(Observed::Missed(count)) => self.missed += count,
            Some(Observed::Event(Observation { kind, count, micros })) => {
                assert!(u32::from(count) == micros && u32::from(kind) == micros, "torn: {kind} {count} {micros}");
                self.events.push(kind);
            }
        }
        true
    }

    fn total(&self) -> u64 {
        self.events.len() as u64 + self.missed
    }

    /// Of events that one writer wrote in this order, those that were read.
    fn of(&self, written: &[u8]) -> Vec<u8> {
        self.events.iter().copied().filter(|event| written.contains(event)).collect()
    }
}

/// Two writers and somebody who reads meanwhile: each event is read once, or missed and counted; none is torn, or was
/// never written; and those of one writer are in its order.
pub fn writers_vs_reader<const N: usize>(head: Flaw, slot: Flaw) {
    explore(move || {
        let ring = ring::<N>(head, slot);
        let Some(mut watcher) = ring.watch() else { panic!("nobody else watches") };
        let writer = |events: [u8; 2]| {
            let ring = ring.clone();
            loom::thread::spawn(move || events.map(|event| push(&ring, event)))
        };
        let writers = [[1, 2], [3, 4]];
        let threads = writers.map(writer);
        let mut seen = Seen::default();
        seen.read(&mut watcher);
        for thread in threads {
            assert!(thread.join().is_ok());
        }
        while seen.read(&mut watcher) {}
        assert_eq!(seen.total(), 4, "read {:?}, missed {}", seen.events, seen.missed);
        for written in writers {
            let read = seen.of(&written);
            assert!(read.is_sorted_by(|one, two| one < two), "read {:?} of one writer", read);
        }
        assert!(seen.events.len() >= N.min(2), "the last ones are there: {:?}", seen.events);
    });
}

/// Somebody comes to watch while another one ends: it reads what is written after it has come, and nothing from before.
pub fn watcher_vs_watcher(head: Flaw, slot: Flaw) {
    explore(move || {
        let ring = ring::<2>(head, slot);
        let Some(first) = ring.watch() else { panic!("nobody else watches") };
        push(&ring, 1);
        let writer = {
            let ring = ring.clone();
            loom::thread::spawn(move || push(&ring, 2))
        };
        let other = {
            let ring = ring.clone();
            loom::thread::spawn(move || {
                let Some(mut second) = ring.watch() else { panic!("one place is taken") };
                push(&ring, 3);
                let mut seen = Seen::default();
                // The other writer may have its place, and be held up.
                while seen.total() < 2 && seen.read(&mut second) {}
                seen
            })
        };
        drop(first);
        assert!(writer.join().is_ok());
        let Ok(seen) = other.join() else { panic!("a thread of the model panicked") };
        assert!(!seen.events.contains(&1), "it was before: {:?}", seen.events);
        // Nobody watches any more.
        push(&ring, 4);
        let Some(mut last) = ring.watch() else { panic!("nobody else watches") };
        assert_eq!(last.read(), None, "read what nobody watched");
        push(&ring, 5);
        let mut seen = Seen::default();
        assert!(seen.read(&mut last) && !seen.read(&mut last));
        assert_eq!(seen.events, [5], "{} missed", seen.missed);
    });
}
