//! Every idle time from every start, around several turns of the stamp.
//!
//! With one token of 2^27 ticks and a tick of one microsecond, a stamp turns over in sixteen tokens' time. Times in
//! quarters of a token make of it what a six-bit stamp would be, with the code that runs in the field.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

use core::cell::Cell;
use core::sync::atomic::Ordering;
use core::time::Duration;

use tollgate_core::{DefaultWord, NoClock, Quota, State, TokenBucket, Word, Words};

/// A quarter of a token's time, in ticks and in microseconds.
const QUARTER: u64 = 1 << 25;
const CAPACITY: u64 = 4;
const TURN: u64 = 64;

/// Miri is slow.
const STRIDE: usize = if cfg!(miri) { 37 } else { 1 };

fn quota() -> Quota {
    Quota::new(1, Duration::from_micros(4 * QUARTER)).unwrap().with_burst(4).unwrap()
}

/// The ideal bucket, in quarters of a token and whole numbers.
#[derive(Clone, Copy)]
struct Ideal {
    level: u64,
    at: u64,
}

impl Ideal {
    fn level(self, now: u64) -> u64 {
        (self.level + now.saturating_sub(self.at)).min(4 * CAPACITY)
    }

    fn take(&mut self, now: u64, n: u64) -> bool {
        let level = self.level(now);
        if level < 4 * n {
            return false;
        }
        *self = Self { level: level - 4 * n, at: now.max(self.at) };
        true
    }
}

/// Takes `takes` at `times`, and compares each answer with the ideal bucket's.
fn compare(level: u32, start: u64, times: &[u64], takes: &[u32]) {
    let quota = quota();
    let words = Words::holding(State::new(&quota, level, quota.moment(start * QUARTER)));
    let bucket = TokenBucket::over(quota, words, NoClock);
    let mut ideal = Ideal { level: 4 * u64::from(level), at: start };
    for (now, n) in times.iter().zip(takes) {
        let context = format!("level {level} at {start}, takes {takes:?} at {times:?}, now {now}");
        let available = bucket.available_at(now * QUARTER).unwrap();
        assert_eq!(u64::from(available), ideal.level(*now) / 4, "{context}");
        let granted = bucket.try_acquire_at(now * QUARTER, *n).is_ok();
        assert_eq!(granted, ideal.take(*now, u64::from(*n)), "{context}");
    }
}

#[test]
fn one_idle_time_of_up_to_three_turns() {
    for start in (0..TURN).step_by(STRIDE) {
        for level in 0..=4 {
            for idle in (0..=200).step_by(STRIDE) {
                for first in 1..=4 {
                    let now = start + idle;
                    compare(level, start, &[now, now, now + 1, now + 17], &[first, 1, 1, 4]);
                }
            }
        }
    }
}

#[test]
fn two_idle_times_one_after_the_other() {
    for start in [0, 1, 15, 16, 31, 32, 47, 48, 63] {
        for first in (0..=TURN + 8).step_by(STRIDE) {
            for second in (0..=2 * TURN + 8).step_by(STRIDE) {
                for take in [1, 4] {
                    let now = start + first;
                    let times = [now, now + second, now + second, now + second + 4];
                    compare(0, start, &times, &[take, take, 1, 1]);
                }
            }
        }
    }
}

#[test]
fn a_clock_that_goes_back_by_any_amount() {
    for start in [130, 140, 191, 192] {
        for back in (0..=130).step_by(STRIDE) {
            let times = [start, start + 40, start + 40 - back, start + 40, start + 44, start + 60];
            compare(4, start, &times, &[4, 2, 1, 1, 2, 4]);
        }
    }
}

/// The bucket whose time to fill is a whole turn of the stamp: it settles on the way.
#[test]
fn the_largest_burst_over_any_idle_time() {
    let quota = Quota::new(1, Duration::from_micros(1)).unwrap().with_burst(u32::MAX).unwrap();
    let sixteenth = 1_u64 << 27;
    for start in (0..20).step_by(STRIDE) {
        for idle in 0..40 {
            for late in 0..3 {
                let (start, now) = (start * sixteenth, (start + idle) * sixteenth + late);
                let words = Words::holding(State::new(&quota, 0, quota.moment(start)));
                let bucket = TokenBucket::over(quota, words, NoClock);
                let level = (now - start).min(u64::from(u32::MAX));
                assert_eq!(u64::from(bucket.available_at(now).unwrap()), level);
                if level > 0 {
                    assert_eq!(bucket.try_acquire_at(now, 1).map(u64::from), Ok(level - 1));
                }
                assert_eq!(
                    u64::from(bucket.available_at(now + 5).unwrap()),
                    (level.saturating_sub(1) + 5).min(u64::from(u32::MAX))
                );
            }
        }
    }
}

/// A horizon whose users are held up when they come to raise it, or a state, whose users are not.
struct Slow<'a> {
    word: DefaultWord,
    /// From what, and to what, the first of them was about to raise it; `None` lets them.
    held: Option<&'a Cell<Option<[u64; 2]>>>,
}

/// Nobody has come yet.
const NOBODY: Option<[u64; 2]> = Some([0, 0]);

impl<'a> Slow<'a> {
    /// Makes the two words of a bucket that was empty at 0.
    fn words(held: &'a Cell<Option<[u64; 2]>>) -> [Self; 2] {
        let [state, horizon] = State::new(&quota(), 0, quota().moment(0)).to_words().map(DefaultWord::new);
        [Self { word: state, held: None }, Self { word: horizon, held: Some(held) }]
    }

    /// Goes on with what somebody was held up in.
    fn goes_on(&self, [seen, raised]: [u64; 2]) {
        let _ = self.word.compare_exchange(seen, raised, Ordering::Release, Ordering::Relaxed);
    }
}

impl Word for Slow<'_> {
    fn load(&self, order: Ordering) -> u64 {
        self.word.load(order)
    }

    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        match self.held.map(Cell::get) {
            Some(Some(held)) => {
                if Some(held) == NOBODY {
                    self.held.unwrap().set(Some([current, new]));
                }
                Err(self.word.load(failure))
            }
            _ => self.word.compare_exchange(current, new, success, failure),
        }
    }
}

/// A caller is held up between the two steps of a jump, in either epoch. The next one, whose clock is behind or not,
/// settles it, and no token is there twice, not even when the first one goes on.
#[test]
fn a_jump_that_was_half_done() {
    let cases =
        [40, 64, 65, 49, 100, 128, 1000, 33, 50, 36].map(|idle| [0, 1, 3, 15, 16, 20, 33].map(|late| (idle, late)));
    for ((idle, behind), jumps) in cases.into_iter().flatten().flat_map(|case| [(case, 0), (case, 1)]) {
        let held = Cell::new(None);
        let [state, horizon] = Slow::words(&held);
        let bucket = TokenBucket::over(quota(), Words::new(&state, &horizon), NoClock);
        let mut now = 0;
        for _ in 0..jumps {
            now += 100 * QUARTER;
            assert_eq!(bucket.try_acquire_at(now, 4), Ok(0));
        }
        let before = now;
        now += idle * QUARTER;
        held.set(NOBODY);
        assert!(bucket.try_acquire_at(now, 1).is_err(), "it is held up");
        assert_eq!(bucket.available_at(now), Ok(4));
        let left = bucket.state().unwrap();
        assert_eq!(left.tokens(), 4);
        assert!(left.credited_until(&quota()) > before && left.credited_until(&quota()) <= now);
        assert_eq!((now - left.credited_until(&quota())) % (TURN * QUARTER), 0, "its stamp, within a turn");
        let late = held.take().unwrap();
        // The next one.
        let early = now - behind * QUARTER;
        assert_eq!(bucket.try_acquire_at(early, 3), Ok(1));
        horizon.goes_on(late);
        assert_eq!(bucket.available_at(early), Ok(1), "idle for {idle}, {behind} behind");
        assert_eq!(bucket.try_acquire_at(early, 1), Ok(0));
        assert!(bucket.try_acquire_at(early, 1).is_err());
        // Nothing accrues twice: the bucket was full when the first one came, if the clocks are not too far apart.
        if behind <= 16 {
            assert_eq!(bucket.available_at(now), Ok(0), "idle for {idle}, {behind} behind");
            assert_eq!(bucket.available_at(now + 4 * QUARTER - 1), Ok(0));
            assert_eq!(bucket.available_at(now + 4 * QUARTER), Ok(1));
        }
        now += 8 * QUARTER;
        assert!(bucket.available_at(now).unwrap() <= 2 + u32::try_from(behind / 4).unwrap());
        let rest = bucket.available_at(now).unwrap();
        bucket.try_acquire_at(now, rest).unwrap();
    }
}

/// Somebody died in the middle of a jump, so long ago that its stamp looks like one to come. Who comes next does not
/// wait for that.
#[test]
fn a_stamp_that_is_nobodys_of_now() {
    let held = Cell::new(NOBODY);
    let [state, horizon] = Slow::words(&held);
    let bucket = TokenBucket::over(quota(), Words::new(&state, &horizon), NoClock);
    assert!(bucket.try_acquire_at(40 * QUARTER, 1).is_err(), "it is held up, and dies");
    held.set(None);
    // The stamp of 40 is that of 104, too.
    let now = (40 + TURN - 20) * QUARTER;
    assert_eq!(bucket.try_acquire_at(now, 4), Ok(0));
    assert_eq!(bucket.available_at(now + 4 * QUARTER), Ok(1));
}

/// In the middle of a jump, which is above the horizon's reach, the horizon is raised for a call by a clock that is a
/// little behind. The jump's stamp is now within reach, and stands all the same.
#[test]
fn a_jump_met_by_a_raise() {
    for behind in 1..=4 {
        let held = Cell::new(None);
        let [state, horizon] = Slow::words(&held);
        let bucket = TokenBucket::over(quota(), Words::new(&state, &horizon), NoClock);
        let (before, now) = (20 * QUARTER, 36 * QUARTER);
        assert_eq!(bucket.try_acquire_at(before, 4), Ok(0));
        held.set(NOBODY);
        assert!(bucket.try_acquire_at(now - behind * QUARTER, 1).is_err(), "it is held up: not full yet");
        let raise = held.replace(NOBODY).unwrap();
        assert!(bucket.try_acquire_at(now, 4).is_err(), "it is held up in its jump");
        held.set(None);
        horizon.goes_on(raise);
        assert_eq!(bucket.state().unwrap().credited_until(&quota()), now);
        assert_eq!(bucket.try_acquire_at(now, 4), Ok(0));
        assert_eq!(bucket.available_at(now + 4 * QUARTER - 1), Ok(0));
        assert_eq!(bucket.available_at(now + 16 * QUARTER), Ok(4), "it accrues from now on");
    }
}

/// Somebody is held up in the middle of a jump for so long that the words are another bucket's, in other ticks: going
/// on, it changes nothing of that.
#[test]
fn a_raise_that_comes_to_another_bucket() {
    let held = Cell::new(NOBODY);
    let [state, horizon] = Slow::words(&held);
    let bucket = TokenBucket::over(quota(), Words::new(&state, &horizon), NoClock);
    let now = 100 * QUARTER;
    assert!(bucket.try_acquire_at(now, 1).is_err(), "it is held up");
    let late = held.take().unwrap();

    let slower = Quota::new(1, Duration::from_hours(1)).unwrap().with_burst(3).unwrap();
    for (cell, word) in [&state, &horizon].into_iter().zip(State::new(&slower, 1, slower.moment(now)).to_words()) {
        let seen = cell.load(Ordering::Relaxed);
        cell.word.compare_exchange(seen, word, Ordering::Relaxed, Ordering::Relaxed).unwrap();
    }
    let heir = TokenBucket::over(slower, Words::new(&state, &horizon), NoClock);
    horizon.goes_on(late);
    assert_eq!(heir.try_acquire_at(now, 1), Ok(0));
    let wait = heir.retry_after_at(now, 1).unwrap();
    assert!(wait <= Duration::from_hours(1) + Duration::from_micros(50), "{wait:?}");
}
