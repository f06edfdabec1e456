//! The models of the pool, of permits, of the one-word form and of the counter.

use core::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use tollgate_core::{AtomicTokenBucket, Clock, CompactTokenBucket, Counter, CounterClock, NoClock};

use crate::{CAPACITY, Flaw, LoomWord, QUARTER, explore, quota, race};

type Pool = AtomicTokenBucket<LoomWord>;

/// Makes a pool of ten that holds `tokens`; its token word has a flaw.
fn pool(tokens: u64, flaw: Flaw) -> Arc<Pool> {
    Arc::new(AtomicTokenBucket::over(LoomWord::new(tokens, flaw), LoomWord::new(10, Flaw::None)))
}

fn claimed(pool: &Pool, n: u64) -> u64 {
    pool.claim(n).unwrap_or(0)
}

/// Two claims of more than there is.
pub fn claim_vs_claim(flaw: Flaw) {
    explore(move || {
        let pool = pool(8, flaw);
        let (one, two) = race(&pool, |p| claimed(p, 5) + claimed(p, 2), |p| claimed(p, 5) + claimed(p, 2));
        assert!(one + two <= 8, "{one} and {two} claimed");
        assert_eq!(one + two + pool.available(), 8, "claimed and left");
    });
}

/// A claim and a refill: nothing is lost, and nothing claimed twice.
pub fn claim_vs_refill(flaw: Flaw) {
    explore(move || {
        let pool = pool(3, flaw);
        let (got, added) = race(&pool, |p| claimed(p, 5) + claimed(p, 3), |p| p.refill(4) + p.refill(2));
        assert_eq!(added, 6, "there was room for all");
        assert_eq!(got + pool.available(), 3 + added, "claimed and left");
    });
}

/// Two refills of which one and a half find room.
pub fn refill_vs_refill(flaw: Flaw) {
    explore(move || {
        let pool = pool(8, flaw);
        let (one, two) = race(&pool, |p| p.refill(5), |p| p.refill(1));
        assert_eq!(one + two, 2, "{one} and {two} found room");
        assert_eq!(pool.available(), 10);
    });
}

/// Everything is taken once.
pub fn drain_vs_claim(flaw: Flaw) {
    explore(move || {
        let pool = pool(7, flaw);
        let (drained, got) = race(&pool, Pool::drain, |p| claimed(p, 3) + claimed(p, 3));
        assert_eq!(drained + got, 7, "all was taken once");
        assert_eq!(pool.available(), 0);
    });
}

/// What is refilled is drained now or later.
pub fn drain_vs_refill(flaw: Flaw) {
    explore(move || {
        let pool = pool(7, flaw);
        let (drained, added) = race(&pool, |p| p.drain() + p.drain(), |p| p.refill(2) + p.refill(3));
        assert_eq!(drained + pool.available(), 7 + added, "drained and left");
    });
}

/// After a shrink has returned, no claim sees more than the new capacity.
pub fn set_capacity_vs_claim(flaw: Flaw) {
    explore(move || {
        let pool = pool(10, flaw);
        let (seen, got) = race(
            &pool,
            |p| {
                p.set_capacity(4);
                (p.available(), claimed(p, 9))
            },
            |p| claimed(p, 3),
        );
        assert!(seen.0 <= 4 && seen.1 <= 4, "{seen:?} after the shrink");
        let left = pool.available();
        assert!(left <= 4 && seen.1 + got + left <= 10, "{seen:?} and {got} claimed, {left} left");
    });
}

/// A refill that races with a shrink never lets anyone see more than the capacity, and never brings back what was
/// claimed.
pub fn set_capacity_vs_refill(flaw: Flaw) {
    explore(move || {
        let pool = pool(3, flaw);
        let (seen, added) = race(
            &pool,
            |p| {
                p.set_capacity(4);
                (p.available(), claimed(p, 2))
            },
            |p| p.refill(7),
        );
        assert!(seen.0 <= 4, "{seen:?} after the shrink");
        assert!(pool.available() <= 4);
        // What a refill left above the capacity is there again with a larger one; it was refilled once.
        pool.set_capacity(20);
        assert!(seen.1 + pool.available() <= 3 + added, "{seen:?}, {added} added, {} left", pool.available());
    });
}

/// A full pool grants a claim of all, whatever its capacity is just then.
pub fn shrink_vs_claim_of_all(flaw: Flaw) {
    explore(move || {
        let pool = pool(10, flaw);
        let ((), got) = race(&pool, |p| p.set_capacity(4), |p| p.claim(15));
        assert!(got == Some(10) || got == Some(4), "{got:?} of a full pool");
    });
}

/// A claim that meets a pool while it grows throws nothing away.
pub fn grow_vs_claim(flaw: Flaw) {
    explore(move || {
        let pool = pool(10, flaw);
        let grow = |p: &Pool| {
            p.set_capacity(20);
            p.refill(10)
        };
        let (added, got) = race(&pool, grow, |p| claimed(p, 15));
        assert_eq!(added, 10, "there was room for all");
        assert_eq!(got + pool.available(), 20, "claimed and left");
    });
}

/// A shrink does not take what was refilled under a larger capacity that was set after its own.
pub fn shrink_vs_grow_and_refill(flaw: Flaw) {
    explore(move || {
        let pool = pool(10, flaw);
        let grow = |p: &Pool| {
            p.set_capacity(20);
            p.refill(20);
        };
        race(&pool, |p| p.set_capacity(4), grow);
        assert_eq!(pool.available(), pool.capacity(), "refilled, and nobody claimed");
    });
}

/// A permit that is dropped gives back what it did not spend, once.
pub fn permit_drop_vs_claim(flaw: Flaw) {
    explore(move || {
        let pool = pool(6, flaw);
        let spend = |p: &Pool| {
            let Some(mut permit) = p.claim_permit(5) else { return 0 };
            assert!(permit.spend(2).is_ok());
            2
        };
        let (spent, got) = race(&pool, spend, |p| claimed(p, 4));
        assert!(spent == 2 || got == 4, "the first of them was granted");
        assert_eq!(spent + got + pool.available(), 6, "spent and left");
    });
}

/// A counter of eight bits that shows `shown`, and its clock.
struct Timer {
    shown: AtomicU32,
}

/// Two read a counter around its wrap: each sees the time go on, and none sees a turn that was not.
///
/// The counter stands at 200 of 256; one thread moves it past the wrap while both read.
pub fn counter_at_its_wrap(flaw: Flaw) {
    explore(move || {
        let Ok(counter) = Counter::new(8, 1_000_000) else { return };
        let timer = Arc::new(Timer { shown: AtomicU32::new(200) });
        let read = {
            let timer = timer.clone();
            // What a timer shows is never older than what a reader knows of; and it goes on by itself.
            move || timer.shown.fetch_add(40, core::sync::atomic::Ordering::AcqRel)
        };
        let clock = Arc::new(CounterClock::over(counter, read, LoomWord::new(0, flaw)));
        let shown = move || u64::from(timer.shown.load(core::sync::atomic::Ordering::Acquire));
        assert_eq!(clock.now_micros(), 200);
        let twice = |c: &CounterClock<_, _>| (c.now_micros(), c.now_micros());
        let (one, two) = race(&clock, twice, twice);
        for (first, second) in [one, two] {
            assert!(first <= second, "{first}, then {second}");
            assert!(first >= 240 && second >= 280, "{first}, then {second}");
        }
        // Each reading has moved it on by 40, also those that were repeated.
        assert_eq!(one.1.max(two.1), shown() - 40, "the last of them saw it");
    });
}

type Compact = CompactTokenBucket<NoClock, LoomWord>;

/// Makes a bucket in one word, on the scale of the others: its stamp turns over in 128 quarters.
fn compact(word: u64, flaw: Flaw) -> Arc<Compact> {
    Arc::new(CompactTokenBucket::over_word(quota(), Duration::from_micros(1), LoomWord::new(word, flaw), NoClock))
}

fn take(bucket: &Compact, quarter: u64, n: u32) -> u32 {
    if bucket.try_acquire_at(quarter * QUARTER, n).is_ok() { n } else { 0 }
}

/// Two come first to a word of zeros: it is full once.
pub fn zero_word_vs_zero_word(flaw: Flaw) {
    explore(move || {
        let bucket = compact(0, flaw);
        let (one, two) = race(&bucket, |b| take(b, 90, 3) + take(b, 90, 1), |b| take(b, 90, 3) + take(b, 90, 1));
        assert_eq!(one + two, CAPACITY, "granted");
        assert_eq!(bucket.available_at(90 * QUARTER), Ok(0));
        assert_eq!(bucket.available_at(94 * QUARTER), Ok(1));
    });
}

/// Two take while the stamp comes round, each by its own clock.
pub fn one_word_at_its_wrap(flaw: Flaw) {
    explore(move || {
        let bucket = compact(0, flaw);
        assert_eq!(bucket.drain_at(120 * QUARTER), Ok(CAPACITY));
        let (one, two) = race(&bucket, |b| take(b, 125, 1) + take(b, 129, 1), |b| take(b, 127, 1) + take(b, 132, 1));
        assert!((1..=3).contains(&(one + two)), "{one} and {two} granted");
        assert_eq!(bucket.available_at(132 * QUARTER), Ok(3 - one - two), "granted and left at 132");
        assert_eq!(bucket.available_at(135 * QUARTER), Ok(3 - one - two), "no fraction minted");
        assert_eq!(bucket.available_at(136 * QUARTER), Ok(4 - one - two), "no fraction lost");
    });
}
