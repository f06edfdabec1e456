//! The models. Each takes the flaws of the words, so that the same model shows that it would find them.
//!
//! Times are in quarters of a token: a stamp turns over in 64, and a call may write up to 32 above the horizon.

#![allow(clippy::panic, reason = "a model fails by a panic")]

use core::cell::Cell;
use core::sync::atomic::Ordering;

use tollgate_core::{NoClock, State, TokenBucket, TryAcquireError, Word, Words};

use crate::{CAPACITY, Flaws, QUARTER, available, bucket, explore, over, quota, race, take};

/// Two threads want more than there is, at one time: what was granted and what is left is what there was.
pub fn acquire_vs_acquire(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(3, flaws);
        let (one, two) = race(&bucket, |b| take(b, 0, 1) + take(b, 0, 1), |b| take(b, 0, 1) + take(b, 0, 1));
        assert_eq!(one + two, 3, "granted");
        assert_eq!(available(&bucket, 0), Some(0), "left");
    });
}

/// Two threads take while time passes, each by its own clock.
pub fn acquire_vs_time(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(0, flaws);
        let (one, two) = race(&bucket, |b| take(b, 3, 1) + take(b, 5, 1), |b| take(b, 4, 1) + take(b, 8, 1));
        // Two tokens have accrued at 8; by then nobody can have had more.
        assert!(one + two <= 2, "{one} and {two} granted");
        assert!(one + two >= 1, "the first token was there at 4");
        assert_eq!(one + two + available(&bucket, 8).unwrap_or(9), 2, "granted and left at 8");
        assert_eq!(one + two + available(&bucket, 11).unwrap_or(9), 2, "no fraction minted");
        assert_eq!(one + two + available(&bucket, 12).unwrap_or(9), 3, "no fraction lost");
    });
}

/// A refund and two takes: nothing is lost, nothing given twice, nothing rises above the capacity.
pub fn refund_vs_acquire(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(1, flaws);
        let ((), got) = race(
            &bucket,
            |b| assert!(b.refund(2).is_ok(), "two threads never contend so often"),
            |b| take(b, 0, 1) + take(b, 0, 2),
        );
        assert!(got >= 1, "there was one from the start");
        assert_eq!(got + available(&bucket, 0).unwrap_or(9), 3, "granted and left");
    });
}

/// Two refunds to a bucket that has room for one.
pub fn refund_vs_refund(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(CAPACITY - 3, flaws);
        let refund = |b: &crate::Bucket| assert!(b.refund(2).is_ok());
        race(&bucket, refund, refund);
        assert_eq!(available(&bucket, 0), Some(CAPACITY));
    });
}

/// Both threads come after a long idle time, with clocks that differ by `apart` quarters.
///
/// The bucket is full at either time, and only once: afterwards, what was granted and what is left is the capacity
/// and what has accrued since the earlier or the later of the two readings.
pub fn long_idle(flaws: Flaws, level: u32, idle: u64, apart: u64) {
    explore(move || {
        let bucket = bucket(level, flaws);
        let (one, two) = race(&bucket, move |b| take(b, idle, 3), move |b| take(b, idle - apart, 2));
        let later = idle + 4;
        let left = available(&bucket, later).unwrap_or(99);
        // The smaller take leaves room for the other only together with a token that accrues between the readings.
        assert!(one + two == 3 || one + two == 2 || (one + two == 5 && apart >= 4), "{one} and {two} granted");
        let least = CAPACITY + 1 - one - two;
        let most = (4 * (CAPACITY + 1 - one - two) + u32::try_from(apart).unwrap_or(99)) / 4;
        assert!((least..=most).contains(&left), "granted {one} and {two}, {left} left, not {least} to {most}");
    });
}

/// A word of a caller that dies when it comes to raise the horizon.
struct Dying {
    cell: Cell<u64>,
    is_horizon: bool,
}

impl Dying {
    /// Returns the words that a caller leaves behind who came to an empty bucket after `idle` quarters.
    fn words_after(idle: u64) -> [u64; 2] {
        let [state, horizon] = State::new(&quota(), 0, quota().moment(0)).to_words().map(Cell::new);
        let (state, horizon) = (Self { cell: state, is_horizon: false }, Self { cell: horizon, is_horizon: true });
        let bucket = TokenBucket::over(quota(), Words::new(&state, &horizon), NoClock);
        assert!(bucket.try_acquire_at(idle * QUARTER, 1).is_err(), "a dead caller gets nothing");
        assert_eq!(horizon.cell.get(), 0);
        [state.cell.get(), 0]
    }
}

impl Word for Dying {
    fn load(&self, _: Ordering) -> u64 {
        self.cell.get()
    }

    fn compare_exchange(&self, current: u64, new: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        let seen = self.cell.get();
        if self.is_horizon || seen != current {
            return Err(seen);
        }
        self.cell.set(new);
        Ok(seen)
    }
}

/// Somebody settled a full bucket and died before the horizon was advanced; two threads come, then one of them again.
pub fn settled_by_a_dead_thread(flaws: Flaws, idle: u64) {
    explore(move || {
        let bucket = over(Dying::words_after(idle), flaws);
        let (one, two) = race(&bucket, move |b| take(b, idle, 1) + take(b, idle, 1), move |b| take(b, idle, 1));
        assert_eq!(one + two, 3, "granted");
        assert_eq!(available(&bucket, idle), Some(1), "left");
        assert_eq!(available(&bucket, idle + 4), Some(2), "left a token's time later");
    });
}

/// One thread takes after a long idle time, the other only looks: it sees the level before or after, and no third.
pub fn look_vs_long_idle(flaws: Flaws, idle: u64) {
    explore(move || {
        let bucket = bucket(0, flaws);
        let (got, seen) = race(&bucket, move |b| take(b, idle, 1), move |b| available(b, idle));
        assert_eq!(got, 1);
        assert!(seen == Some(CAPACITY) || seen == Some(CAPACITY - 1), "saw {seen:?}");
    });
}

/// One thread raises the horizon of a bucket in use, the other looks: it sees one of the levels that there were.
pub fn look_vs_raise(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(0, flaws);
        // Drained at 20, the bucket holds three at 33, when the horizon is out of reach.
        let (got, seen) = race(&bucket, |b| (take(b, 20, 4), take(b, 33, 1)), |b| available(b, 33));
        assert_eq!(got, (4, 1));
        assert!(matches!(seen, Some(2..=4)), "saw {seen:?}");
    });
}

/// One thread may be late to raise the horizon, until after another's jump: its raise changes nothing then.
pub fn late_raise(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(0, flaws);
        assert_eq!(take(&bucket, 20, CAPACITY), CAPACITY);
        // Three at 33, when the horizon is out of reach; and full at 130, when only a jump brings it near.
        let (one, two) =
            race(&bucket, |b| take(b, 33, 1), |b| (take(b, 33, 1), take(b, 130, CAPACITY), take(b, 130, 1)));
        // The one's reading is so old that it may delay the refill, but it mints nothing.
        let most = match (one, two) {
            (_, (1, CAPACITY, 0)) => 1,
            // It took by its late clock from the bucket that the other had just found full.
            (1, (1, 0, 1)) => 3,
            _ => panic!("{one} and {two:?} granted"),
        };
        let later = available(&bucket, 134);
        assert!(later <= Some(most), "{one} and {two:?} granted, {later:?} left");
    });
}

/// By the one's clock the bucket is not yet full, by the other's it is: the one may raise the horizon in the middle of
/// the other's jump. Whoever finishes that keeps its stamp, from which the bucket is full again in time.
pub fn raise_vs_jump(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(0, flaws);
        assert_eq!(take(&bucket, 20, CAPACITY), CAPACITY);
        let (one, two) = race(&bucket, |b| take(b, 35, 1), |b| take(b, 36, CAPACITY));
        let left = match (one, two) {
            (1, 0) => 3,
            (0, CAPACITY) => 0,
            _ => panic!("{one} and {two} granted"),
        };
        assert_eq!(available(&bucket, 36), Some(left), "{one} and {two} granted");
        assert_eq!(available(&bucket, 52), Some(CAPACITY), "{one} and {two} granted");
    });
}

/// A bucket that owes has a stamp in the future. Refunded, it is full before that, and jumps: above the stamp, so
/// that who is about to raise the horizon to that stamp, for the token that came back first, stays below.
pub fn late_raise_for_a_debt(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(CAPACITY, flaws);
        assert_eq!(bucket.overdraw_at(31 * QUARTER, 2 * CAPACITY), Ok(0));
        assert_eq!(bucket.refund(1), Ok(()));
        let (one, two) = race(
            &bucket,
            |b| take(b, 33, 1),
            |b| {
                assert_eq!(b.refund(CAPACITY - 1), Ok(()));
                b.acquire_up_to_at(34 * QUARTER, CAPACITY).unwrap_or(99)
            },
        );
        assert_eq!(one + two, CAPACITY, "{one} and {two} granted of what was refunded");
        assert_eq!(available(&bucket, 47), Some(0), "until the debt is paid");
        assert_eq!(available(&bucket, 52), Some(1), "a token accrues after it");
    });
}

/// Two threads come out of the horizon's reach: by the one's clock the bucket has just become full, by the other's it
/// has not. Who finishes the other's jump lets its stamp stand, so that the time between the readings accrues once.
pub fn late_settler(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(0, flaws);
        assert_eq!(take(&bucket, 30, CAPACITY), CAPACITY);
        let (one, two) = race(&bucket, |b| take(b, 46, CAPACITY), |b| take(b, 43, CAPACITY));
        assert_eq!(one + two, CAPACITY, "{one} and {two} granted");
        assert_eq!(available(&bucket, 49), Some(0), "three quarters of a token have accrued since 46");
        assert_eq!(available(&bucket, 50), Some(1));
    });
}

/// A thread takes all after a long idle time and again a little later, beside one that is refused or not by the same
/// clock.
pub fn twice_after_long_idle(flaws: Flaws, idle: u64) {
    explore(move || {
        let bucket = bucket(0, flaws);
        let (one, two) =
            race(&bucket, move |b| take(b, idle, CAPACITY) + take(b, idle + 4, 1), move |b| take(b, idle, CAPACITY));
        assert!(one + two == CAPACITY + 1 || one + two == CAPACITY, "{one} and {two} granted");
        assert_eq!(one + two + available(&bucket, idle + 4).unwrap_or(99), CAPACITY + 1, "granted and left");
    });
}

/// A reset and takes: the bucket is full once more, in one order or the other.
pub fn reset_vs_acquire(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(1, flaws);
        let (reset, got) =
            race(&bucket, |b| b.reset_at(0).is_ok(), |b| take(b, 0, 1) + take(b, 0, CAPACITY) + take(b, 0, CAPACITY));
        assert!(reset, "two threads never contend so often");
        let left = available(&bucket, 0).unwrap_or(99);
        // The one that was there may be taken before the reset; what is taken after it is missing.
        assert!(matches!((got, left), (1, 3 | 4) | (5, 0)), "{got} granted, {left} left");
    });
}

/// Taking what there is, against taking all or nothing.
pub fn acquire_up_to_vs_acquire(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(3, flaws);
        let up_to = |b: &crate::Bucket| b.acquire_up_to_at(0, 2).unwrap_or(99);
        let (one, two) = race(&bucket, move |b| up_to(b) + up_to(b), |b| take(b, 0, 2));
        assert_eq!(one + two, 3, "all three were taken once");
        assert_eq!(available(&bucket, 0), Some(0), "left");
    });
}

/// A permit that is dropped, against a take, after a long idle time.
pub fn permit_drop_vs_acquire(flaws: Flaws, idle: u64) {
    explore(move || {
        let bucket = bucket(0, flaws);
        let spend_one = move |b: &crate::Bucket| {
            let Ok(mut permit) = b.try_acquire_permit_at(idle * QUARTER, 3) else { return 0 };
            assert!(permit.spend(1).is_ok());
            1
        };
        let (spent, got) = race(&bucket, spend_one, move |b| take(b, idle, 2));
        assert!(spent == 1 || got == 2, "the first of them was granted");
        assert_eq!(spent + got + available(&bucket, idle).unwrap_or(99), CAPACITY, "spent and left");
    });
}

/// The words of a bucket that a handing over will fill.
fn heir(flaws: Flaws) -> loom::sync::Arc<crate::Bucket> {
    over([0, 0], flaws)
}

/// Takes from the bucket, or from its heir once it has moved.
fn take_from(bucket: &crate::Bucket, heir: &crate::Bucket, quarter: u64, n: u32) -> u32 {
    match bucket.try_acquire_at(quarter * QUARTER, n) {
        Ok(_) => n,
        Err(TryAcquireError::Moved) => take(heir, quarter, n),
        Err(_) => 0,
    }
}

/// A bucket is handed over while another takes from it: each token is granted once, by the one or by the other.
pub fn hand_over_vs_acquire(flaws: Flaws) {
    explore(move || {
        let (bucket, heir) = (bucket(3, flaws), heir(flaws));
        let (to, next) = (heir.clone(), heir.clone());
        let (handed_over, got) = race(
            &bucket,
            move |b| b.hand_over_at(0, &to).is_ok(),
            move |b| take_from(b, &next, 0, 1) + take_from(b, &next, 0, 1),
        );
        assert!(handed_over, "two threads never contend so often");
        assert_eq!(got, 2, "granted");
        assert_eq!(bucket.available_at(0), Err(TryAcquireError::Moved));
        assert_eq!(available(&heir, 0), Some(1), "left");
    });
}

/// A bucket is handed over while a refund is on its way.
pub fn hand_over_vs_refund(flaws: Flaws) {
    explore(move || {
        let (bucket, heir) = (bucket(1, flaws), heir(flaws));
        let (to, next) = (heir.clone(), heir.clone());
        let refund = move |b: &crate::Bucket| match b.refund(2) {
            Err(TryAcquireError::Moved) => next.refund(2).is_ok(),
            outcome => outcome.is_ok(),
        };
        let outcome = race(&bucket, move |b| b.hand_over_at(0, &to).is_ok(), refund);
        assert_eq!(outcome, (true, true), "two threads never contend so often");
        assert_eq!(available(&heir, 0), Some(3), "left");
    });
}

/// A bucket is handed over after a long idle time, while another takes from it: it is full once.
pub fn hand_over_vs_long_idle(flaws: Flaws, idle: u64) {
    explore(move || {
        let (bucket, heir) = (bucket(1, flaws), heir(flaws));
        let (to, next) = (heir.clone(), heir.clone());
        let (handed_over, got) =
            race(&bucket, move |b| b.hand_over_at(idle * QUARTER, &to).is_ok(), move |b| take_from(b, &next, idle, 3));
        assert!(handed_over, "two threads never contend so often");
        assert_eq!(got, 3, "granted");
        assert_eq!(available(&heir, idle), Some(CAPACITY - 3), "left");
        assert_eq!(available(&heir, idle + 4), Some(CAPACITY - 2), "left a token's time later");
    });
}

/// One overdraws, the other takes: both are paid for before the next token is there.
pub fn overdraw_vs_acquire(flaws: Flaws) {
    explore(move || {
        let bucket = bucket(2, flaws);
        let overdraw = |b: &crate::Bucket| b.overdraw_at(0, 3).is_ok();
        let (overdrawn, got) = race(&bucket, overdraw, |b| take(b, 0, 1));
        assert!(overdrawn, "two threads never contend so often");
        let owed = 1 + u64::from(got);
        assert_eq!(available(&bucket, 4 * (owed + 1) - 1), Some(0), "owed, after {got} granted");
        assert_eq!(available(&bucket, 4 * (owed + 1)), Some(1), "paid, after {got} granted");
    });
}
