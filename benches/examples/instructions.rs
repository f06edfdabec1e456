//! Makes one kind of call a given number of times, for counting instructions: `instructions grant 1000`.
//!
//! The difference of two counts, divided by the difference of the calls, is what one call costs.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a tool for measuring")]

use std::hint::black_box;
use std::time::Duration;

use tollgate::{FastClock, Options, SharedRateLimiter};
use tollgate_benches::warm_up_the_fast_clock;
use tollgate_core::{AtomicTokenBucket, CompactTokenBucket, NoClock, Quota, TokenBucket, quota};

const PLENTY: Quota = quota!(Quota::per_second(1_000_000), burst 1_000_000_000);
const NOTHING: Quota = quota!(Quota::per_day(1));

/// Its ticks are chosen when it is compiled.
static COMPACT: CompactTokenBucket = CompactTokenBucket::with_window(PLENTY, Duration::from_hours(1), NoClock);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (kind, calls) = (arguments.next().unwrap(), arguments.next().unwrap().parse::<u64>().unwrap());
    let bucket = TokenBucket::new(PLENTY);
    let empty = TokenBucket::new(NOTHING);
    empty.try_acquire_at(0, 1).unwrap();
    let half = TokenBucket::new(PLENTY);
    half.try_acquire_at(0, 500_000_000).unwrap();
    let pool = AtomicTokenBucket::new(u64::MAX);
    let drained = AtomicTokenBucket::new(u64::MAX);
    drained.drain();

    let folder = tempfile::tempdir().unwrap();
    let counted = SharedRateLimiter::create(folder.path().join("plenty"), PLENTY).unwrap();
    let counted_empty = SharedRateLimiter::create(folder.path().join("nothing"), NOTHING).unwrap();
    counted_empty.try_acquire(1).unwrap();
    let uncounted = |name| Options::new().counters(false).open(folder.path().join(name)).unwrap();
    let (shared, shared_empty) = (uncounted("plenty"), uncounted("nothing"));
    // Times of the file, which began when it was made.
    let start = tollgate::Clock::now_micros(&tollgate::MachineClock);

    match kind.as_str() {
        "nothing" => repeat(calls, |now| now),
        "grant" => repeat(calls, |now| bucket.try_acquire_at(now, 1)),
        "grant not full" => repeat(calls, |now| half.try_acquire_at(now, 1)),
        "refuse" => repeat(calls, |now| empty.try_acquire_at(now, 1)),
        "available" => repeat(calls, |now| bucket.available_at(now)),
        "retry_after" => repeat(calls, |now| empty.retry_after_at(now, 1)),
        "refund" => repeat(calls, |now| bucket.refund(u32::from(now == 0))),
        "acquire_up_to" => repeat(calls, |now| bucket.acquire_up_to_at(now, 1)),
        "reset" => repeat(calls, |now| bucket.reset_at(now)),
        "compact grant" => repeat(calls, |now| COMPACT.try_acquire_at(now, 1)),
        "shared grant" => repeat(calls, |now| shared.try_acquire_at(start + now, 1)),
        "shared refuse" => repeat(calls, |now| shared_empty.try_acquire_at(start + now, 1)),
        "counted grant" => repeat(calls, |now| counted.try_acquire_at(start + now, 1)),
        "counted refuse" => repeat(calls, |now| counted_empty.try_acquire_at(start + now, 1)),
        "shared available" => repeat(calls, |now| shared.available_at(start + now)),
        "fast grant" => fast(PLENTY, |bucket| repeat(calls, |_| bucket.try_acquire(1).is_ok())),
        "fast refuse" => fast(NOTHING, |bucket| repeat(calls, |_| bucket.try_acquire(1).is_ok())),
        "fast available" => fast(NOTHING, |bucket| repeat(calls, |_| bucket.available())),
        "claim" => repeat(calls, |_| pool.claim(1)),
        "refill" => repeat(calls, |_| drained.refill(1)),
        other => panic!("no such call: {other}"),
    }
}

/// Makes calls on a bucket by the fast clock.
fn fast(quota: Quota, calls: impl Fn(&TokenBucket<FastClock>)) {
    let bucket = TokenBucket::with_clock(quota, FastClock);
    bucket.try_acquire(1).unwrap();
    warm_up_the_fast_clock();
    calls(&bucket);
}

/// Makes a call at each of as many microseconds: in a function of its own, where what else `main` keeps at hand
/// changes no count.
#[inline(never)]
fn repeat<T>(calls: u64, mut call: impl FnMut(u64) -> T) {
    for now in 0..calls {
        black_box(call(black_box(1_000_000 + now)));
    }
}
