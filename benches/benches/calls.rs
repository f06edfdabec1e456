//! One call, uncontended, and two threads at once: the bucket, the shared file and a lock, by one clock in one run.
//!
//! Compare the figures of one run with each other, and with no other run's.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "a benchmark")]

use std::hint::black_box;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use tollgate::{CachedClock, FastClock, MachineClock, Options, SharedRateLimiter};
use tollgate_benches::LockedBucket;
use tollgate_core::{Clock, NoClock, Quota, TokenBucket, quota};

/// Always granted: far more accrues than a benchmark takes.
const PLENTY: Quota = quota!(Quota::per_second(4_000_000_000));
/// Never granted, once the one token is gone.
const NOTHING: Quota = quota!(Quota::per_day(1));

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// The same call on a bucket in memory, in a file, and behind a lock.
fn compare(group: &mut Group<'_>, quota: Quota) {
    let folder = tempfile::tempdir().unwrap();
    let memory = TokenBucket::with_clock(quota, MachineClock);
    let file = SharedRateLimiter::create(folder.path().join("limit"), quota).unwrap();
    let fast_memory = TokenBucket::with_clock(quota, FastClock);
    let fast_file = Options::new().fast_clock(true).create(folder.path().join("fast"), quota).unwrap();
    let _ = (fast_memory.try_acquire(1), fast_file.try_acquire(1));
    let cached = CachedClock::new();
    let cached_memory = TokenBucket::with_clock(quota, &cached);
    let _ = cached_memory.try_acquire(1);
    let locked = LockedBucket::new(quota, MachineClock);
    // Drains what has one token; makes no difference to what has plenty.
    let _ = (memory.try_acquire(1), file.try_acquire(1), locked.try_acquire(1));

    group.bench_function("memory", |b| b.iter(|| memory.try_acquire(black_box(1)).is_ok()));
    group.bench_function("file", |b| b.iter(|| file.try_acquire(black_box(1)).is_ok()));
    group.bench_function("memory, fast clock", |b| b.iter(|| fast_memory.try_acquire(black_box(1)).is_ok()));
    group.bench_function("memory, cached clock", |b| b.iter(|| cached_memory.try_acquire(black_box(1)).is_ok()));
    group.bench_function("file, fast clock", |b| b.iter(|| fast_file.try_acquire(black_box(1)).is_ok()));
    group.bench_function("mutex", |b| b.iter(|| locked.try_acquire(black_box(1)).is_some()));
}

fn uncontended(criterion: &mut Criterion) {
    compare(&mut criterion.benchmark_group("grant"), PLENTY);
    compare(&mut criterion.benchmark_group("refuse"), NOTHING);

    let mut group = criterion.benchmark_group("floor");
    group.bench_function("clock", |b| b.iter(|| MachineClock.now_micros()));
    group.bench_function("fast clock", |b| b.iter(|| FastClock.now_micros()));
    let bucket = TokenBucket::new(PLENTY);
    let mut now = 0;
    group.bench_function("grant without a clock", |b| {
        b.iter(|| {
            now += 1;
            bucket.try_acquire_at(black_box(now), 1).is_ok()
        });
    });
    group.finish();

    // A token of a lease, its share of taking and giving back included.
    const LEASED: u32 = 1000;
    let mut group = criterion.benchmark_group("lease");
    group.throughput(Throughput::Elements(LEASED.into()));
    let bucket = TokenBucket::with_clock(PLENTY, MachineClock);
    group.bench_function("memory", |b| {
        b.iter(|| {
            let mut lease = bucket.lease(LEASED).unwrap();
            while black_box(lease.spend(1)).is_ok() {}
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("look");
    let bucket = TokenBucket::with_clock(NOTHING, MachineClock);
    group.bench_function("available", |b| b.iter(|| bucket.available()));
    bucket.try_acquire(1).expect("it was full");
    group.bench_function("retry_after", |b| b.iter(|| bucket.retry_after(1)));
    let full = TokenBucket::over(NOTHING, tollgate_core::Words::holding(tollgate_core::State::full(&NOTHING)), NoClock);
    group.bench_function("refund to a full bucket", |b| b.iter(|| full.refund(1)));
    group.finish();
}

/// Two threads take at once, for as many calls as the benchmark asks for.
fn contended(criterion: &mut Criterion) {
    const CALLS: u64 = 10_000;
    let mut group = criterion.benchmark_group("two threads");
    group.throughput(Throughput::Elements(2 * CALLS));
    let memory = TokenBucket::with_clock(PLENTY, MachineClock);
    let locked = LockedBucket::new(PLENTY, MachineClock);
    let race = |call: &(dyn Fn() -> bool + Sync)| {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..CALLS).filter(|_| call()).count());
            }
        });
    };
    group.bench_function("memory", |b| b.iter(|| race(&|| memory.try_acquire(1).is_ok())));
    group.bench_function("mutex", |b| b.iter(|| race(&|| locked.try_acquire(1).is_some())));
    group.finish();
}

criterion_group!(benches, uncontended, contended);
criterion_main!(benches);
