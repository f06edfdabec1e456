#![doc = include_str!("../README.md")]

pub mod handshake_models;
pub mod models;
pub mod pool_models;
pub mod ring_models;

use core::sync::atomic::Ordering;
use core::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use tollgate_core::{NoClock, Quota, State, TokenBucket, Word, Words};

/// What is broken about a word: each must make a model fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing.
    None,
    /// An exchange stores without comparing.
    StoreForCas,
    /// A load that asks for Acquire gets Relaxed, that of an exchange too; a fence that asks for it is none.
    RelaxedLoad,
    /// A write that asks for Release gets Relaxed; a fence that asks for it is none.
    RelaxedWrite,
}

/// A word whose every interleaving loom explores.
#[derive(Debug)]
pub struct LoomWord {
    cell: AtomicU64,
    flaw: Flaw,
}

impl LoomWord {
    /// Makes a word with a flaw.
    #[must_use]
    pub fn new(value: u64, flaw: Flaw) -> Self {
        Self { cell: AtomicU64::new(value), flaw }
    }
}

impl Word for LoomWord {
    fn load(&self, order: Ordering) -> u64 {
        self.cell.load(if self.flaw == Flaw::RelaxedLoad { Ordering::Relaxed } else { order })
    }

    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        match self.flaw {
            Flaw::StoreForCas => {
                self.cell.store(new, success);
                return Ok(current);
            }
            Flaw::RelaxedWrite => self.cell.compare_exchange(current, new, Ordering::Relaxed, failure),
            Flaw::RelaxedLoad => {
                let success = match success {
                    Ordering::Acquire => Ordering::Relaxed,
                    Ordering::AcqRel => Ordering::Release,
                    other => other,
                };
                self.cell.compare_exchange(current, new, success, Ordering::Relaxed)
            }
            Flaw::None => self.cell.compare_exchange(current, new, success, failure),
        }
        // loom would let a loser spin for ever; a real one loses only because another has won.
        .inspect_err(|_| loom::thread::yield_now())
    }

    fn store(&self, value: u64, order: Ordering) {
        self.cell.store(value, if self.flaw == Flaw::RelaxedWrite { Ordering::Relaxed } else { order });
    }

    fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
        if self.flaw == Flaw::StoreForCas {
            let seen = self.cell.load(Ordering::Relaxed);
            self.cell.store(seen.wrapping_add(n), order);
            return seen;
        }
        self.cell.fetch_add(n, order)
    }

    fn fence(&self, order: Ordering) {
        match (self.flaw, order) {
            (Flaw::RelaxedLoad, Ordering::Acquire) | (Flaw::RelaxedWrite, Ordering::Release) => {}
            _ => loom::sync::atomic::fence(order),
        }
    }
}

/// The flaws of a bucket's two words.
#[derive(Clone, Copy, Debug)]
pub struct Flaws {
    /// Of the state word.
    pub state: Flaw,
    /// Of the horizon.
    pub horizon: Flaw,
}

impl Flaws {
    /// Words as they should be.
    pub const NONE: Self = Self { state: Flaw::None, horizon: Flaw::None };

    /// A flaw of the state word alone.
    #[must_use]
    pub const fn of_state(flaw: Flaw) -> Self {
        Self { state: flaw, horizon: Flaw::None }
    }

    /// A flaw of the horizon alone.
    #[must_use]
    pub const fn of_horizon(flaw: Flaw) -> Self {
        Self { state: Flaw::None, horizon: flaw }
    }
}

/// A bucket that loom explores.
pub type Bucket = TokenBucket<NoClock, Words<LoomWord>>;

/// Ticks, and microseconds, in a quarter of a token: 2^25, so that a stamp turns over in 64 of them.
pub const QUARTER: u64 = 1 << 25;

/// The most tokens in the models' buckets.
pub const CAPACITY: u32 = 4;

/// One token in 2^27 µs, each of one tick, and a burst of four: the finest stamps that 32 bits have, and so the
/// narrowest turn.
#[must_use]
pub fn quota() -> Quota {
    tollgate_core::quota!(Quota::new(1, Duration::from_micros(1 << 27)), burst 4)
}

/// Makes a bucket that holds `level` tokens at the quarter 0.
#[must_use]
pub fn bucket(level: u32, flaws: Flaws) -> Arc<Bucket> {
    over(State::new(&quota(), level, quota().moment(0)).to_words(), flaws)
}

/// Makes a bucket of these words.
#[must_use]
pub fn over([state, horizon]: [u64; 2], flaws: Flaws) -> Arc<Bucket> {
    let words = Words::new(LoomWord::new(state, flaws.state), LoomWord::new(horizon, flaws.horizon));
    Arc::new(TokenBucket::over(quota(), words, NoClock))
}

/// Takes `n` tokens at a time in quarters; returns how many it got.
#[must_use]
pub fn take(bucket: &Bucket, quarter: u64, n: u32) -> u32 {
    if bucket.try_acquire_at(quarter * QUARTER, n).is_ok() { n } else { 0 }
}

/// Returns the tokens at a time in quarters; `None` if others came between too often.
#[must_use]
pub fn available(bucket: &Bucket, quarter: u64) -> Option<u32> {
    bucket.available_at(quarter * QUARTER).ok()
}

/// Explores `model` with at most three preemptions, which find every known bug of this kind.
pub fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Runs two threads and returns what both returned.
///
/// # Panics
///
/// If a thread panicked.
pub fn race<T: 'static, A: 'static, B: 'static>(
    shared: &Arc<T>,
    first: impl FnOnce(&T) -> A + 'static,
    second: impl FnOnce(&T) -> B + 'static,
) -> (A, B) {
    let (one, two) = (shared.clone(), shared.clone());
    let one = loom::thread::spawn(move || first(&one));
    let two = loom::thread::spawn(move || second(&two));
    match (one.join(), two.join()) {
        (Ok(first), Ok(second)) => (first, second),
        #[allow(clippy::panic, reason = "a model fails by a panic")]
        _ => panic!("a thread of the model panicked"),
    }
}
