//! One call, uncontended, files, keys, and two threads at once: the bucket, the shared file and a lock, by one clock
//! in one run.
//!
//! Compare the figures of one run with each other, and with no other run's.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "a benchmark")]

use std::hint::black_box;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use tollgate::{CachedClock, FastClock, MachineClock, Options, SharedRateLimiter};
use tollgate_benches::LockedBucket;
use tollgate_core::{Clock, DefaultWord, KeyedBuckets, NoClock, Quota, State, TokenBucket, Words, quota};

/// Always granted: far more accrues than a benchmark takes.
const PLENTY: Quota = quota!(Quota::per_second(4_000_000_000));
/// Granted, and not full again while a benchmark runs.
const HALF: Quota = quota!(Quota::per_second(1_000_000), burst 4_000_000_000);
/// Never granted, once the one token is gone.
const NOTHING: Quota = quota!(Quota::per_day(1));

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// The same call on a bucket in memory, in a file, and behind a lock.
fn compare(group: &mut Group<'_>, quota: Quota) {
    let folder = tempfile::tempdir().unwrap();
    let memory = TokenBucket::with_clock(quota, MachineClock);
    let file = SharedRateLimiter::create(folder.path().join("limit"), quota).unwrap();
    let uncounted = Options::new().counters(false).create(folder.path().join("uncounted"), quota).unwrap();
    let fast_memory = TokenBucket::with_clock(quota, FastClock);
    let fast_file = Options::new().fast_clock(true).create(folder.path().join("fast"), quota).unwrap();
    let _ = (fast_memory.try_acquire(1), fast_file.try_acquire(1));
    let cached = CachedClock::new();
    let cached_memory = TokenBucket::with_clock(quota, &cached);
    let _ = cached_memory.try_acquire(1);
    let locked = LockedBucket::new(quota, MachineClock);
    // Drains what has one token; makes no difference to what has plenty.
    let _ = (memory.try_acquire(1), file.try_acquire(1), uncounted.try_acquire(1), locked.try_acquire(1));

    group.bench_function("memory", |b| b.iter(|| memory.try_acquire(black_box(1)).is_ok()));
    group.bench_function("file", |b| b.iter(|| file.try_acquire(black_box(1)).is_ok()));
    group.bench_function("file, uncounted", |b| b.iter(|| uncounted.try_acquire(black_box(1)).is_ok()));
    group.bench_function("memory, fast clock", |b| b.iter(|| fast_memory.try_acquire(black_box(1)).is_ok()));
    group.bench_function("memory, cached clock", |b| b.iter(|| cached_memory.try_acquire(black_box(1)).is_ok()));
    group.bench_function("file, fast clock", |b| b.iter(|| fast_file.try_acquire(black_box(1)).is_ok()));
    group.bench_function("mutex", |b| b.iter(|| locked.try_acquire(black_box(1)).is_some()));
}

fn uncontended(criterion: &mut Criterion) {
    compare(&mut criterion.benchmark_group("grant"), PLENTY);
    compare(&mut criterion.benchmark_group("refuse"), NOTHING);

    let mut group = criterion.benchmark_group("grant, not full");
    let memory = TokenBucket::with_clock(HALF, MachineClock);
    let locked = LockedBucket::new(HALF, MachineClock);
    // More is left, and more is missing, than a benchmark takes.
    let _ = (memory.try_acquire(2_000_000_000), locked.try_acquire(2_000_000_000));
    group.bench_function("memory", |b| b.iter(|| memory.try_acquire(black_box(1)).is_ok()));
    group.bench_function("mutex", |b| b.iter(|| locked.try_acquire(black_box(1)).is_some()));
    group.finish();

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
    let locked = LockedBucket::new(NOTHING, MachineClock);
    group.bench_function("available, mutex", |b| b.iter(|| locked.available()));
    let full = TokenBucket::over(NOTHING, Words::holding(State::full(&NOTHING)), NoClock);
    group.bench_function("refund to a full bucket", |b| b.iter(|| full.refund(1)));
    group.finish();
}

/// Files on a disk and in memory: the call is the same, making and opening one is not.
fn files(criterion: &mut Criterion) {
    let disk = tempfile::tempdir().unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").ok();
    let mut group = criterion.benchmark_group("file");
    for (kind, folder) in [("disk", Some(&disk)), ("tmpfs", memory.as_ref())] {
        let Some(folder) = folder else { continue };
        let path = folder.path().join("limit");
        let limiter = SharedRateLimiter::create(&path, PLENTY).unwrap();
        group.bench_function(format!("grant, {kind}"), |b| b.iter(|| limiter.try_acquire(black_box(1)).is_ok()));
        group.bench_function(format!("open, {kind}"), |b| b.iter(|| SharedRateLimiter::open(&path).unwrap()));
        let other = folder.path().join("other");
        group.bench_function(format!("create and remove, {kind}"), |b| {
            b.iter(|| {
                let made = SharedRateLimiter::create(&other, PLENTY).unwrap();
                std::fs::remove_file(&other).unwrap();
                made
            });
        });
    }
    group.finish();
}

/// One quota for each key: a key that is met often, among few and among many.
fn keyed(criterion: &mut Criterion) {
    fn buckets<const N: usize>() -> KeyedBuckets<u32, N> {
        let mut buckets = KeyedBuckets::new(HALF);
        for key in 0..u32::try_from(N).unwrap() {
            buckets.try_acquire_at(0, &key, 2_000_000_000).unwrap();
        }
        buckets
    }
    let mut group = criterion.benchmark_group("keyed");
    let (mut few, mut many) = (buckets::<8>(), buckets::<64>());
    group.bench_function("the last of 8", |b| b.iter(|| few.try_acquire_at(1, black_box(&7), 1).is_ok()));
    group.bench_function("the last of 64", |b| b.iter(|| many.try_acquire_at(1, black_box(&63), 1).is_ok()));
    group.finish();
}

/// A bucket for each of two threads: in one cache line, and each in lines of its own.
fn neighbours(criterion: &mut Criterion) {
    const CALLS: u64 = 10_000;
    #[repr(align(128))]
    struct Lines<const N: usize>([DefaultWord; N]);
    fn lines<const N: usize>() -> Lines<N> {
        let [state, horizon] = State::full(&PLENTY).to_words();
        Lines(std::array::from_fn(|cell| DefaultWord::new(if cell % 2 == 0 { state } else { horizon })))
    }
    let mut group = criterion.benchmark_group("neighbours");
    group.throughput(Throughput::Elements(2 * CALLS));
    let (close, apart) = (lines::<4>(), [lines::<2>(), lines::<2>()]);
    let [a, b, c, d] = &close.0;
    let [Lines([e, f]), Lines([g, h])] = &apart;
    for (name, cells) in [("in one line", [(a, b), (c, d)]), ("apart", [(e, f), (g, h)])] {
        let buckets = cells.map(|(state, horizon)| TokenBucket::over(PLENTY, Words::new(state, horizon), MachineClock));
        group.bench_function(name, |b| {
            b.iter(|| {
                std::thread::scope(|scope| {
                    for bucket in &buckets {
                        scope.spawn(|| (0..CALLS).filter(|_| bucket.try_acquire(1).is_ok()).count());
                    }
                });
            });
        });
    }
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

criterion_group!(benches, uncontended, files, keyed, neighbours, contended);
criterion_main!(benches);
