//! Ours and the others', behind one trait.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::{LazyLock, PoisonError};
use std::time::{Duration, Instant};

use governor::clock::MonotonicClock;
use governor::{DefaultDirectRateLimiter, RateLimiter};
use tollgate::{CachedClock, FastClock, MachineClock, Options, Refreshed, SharedRateLimiter};
use tollgate_benches::LockedBucket;
use tollgate_core::{Clock, Quota, State, TokenBucket};

/// What each of them is asked to allow.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub tokens: u32,
    pub period: Duration,
    pub burst: u32,
}

impl Setting {
    pub const fn per_second(tokens: u32, burst: u32) -> Self {
        Self { tokens, period: Duration::from_secs(1), burst }
    }

    fn rate(self) -> f64 {
        f64::from(self.tokens) / self.period.as_secs_f64()
    }

    fn quota(self) -> Quota {
        let rate = Quota::new(self.tokens, self.period).expect("the settings are in range");
        rate.with_burst(self.burst).expect("the settings are in range")
    }
}

/// A limiter, whose calls are compiled in line wherever it is one of these.
pub trait Limiter: Send + Sync {
    fn take(&self, n: u32) -> bool;

    /// Makes that many calls for one token each; returns how many were granted. Compiled for each limiter.
    fn takes(&self, calls: u32) -> u32 {
        (0..calls).map(|_| u32::from(self.take(black_box(1)))).sum()
    }

    /// Reads the level that many times; `None` if it can't.
    fn looks(&self, calls: u32) -> Option<u32>;
}

/// One of the compared.
#[derive(Clone, Copy)]
pub struct Entry {
    pub name: &'static str,
    pub clock: &'static str,
    pub make: fn(Setting) -> Box<dyn Limiter>,
}

/// The names that the report refers to.
pub const FAST: &str = "tollgate";
pub const FILE: &str = "tollgate, in a file";
pub const MUTEX: &str = "the same in a std Mutex";
pub const PARKING_LOT: &str = "the same in a parking_lot Mutex";
pub const GOVERNOR: &str = "governor";

pub const ENTRIES: &[Entry] = &[
    Entry { name: FAST, clock: "FastClock", make: |s| Box::new(TokenBucket::with_clock(s.quota(), FastClock)) },
    Entry { name: FILE, clock: "FastClock", make: |s| Box::new(File::new(s, true)) },
    Entry { name: FAST, clock: "CachedClock", make: |s| Box::new(TokenBucket::with_clock(s.quota(), &*CACHED)) },
    Entry { name: FAST, clock: "kernel", make: |s| Box::new(TokenBucket::with_clock(s.quota(), MachineClock)) },
    Entry { name: FILE, clock: "kernel", make: |s| Box::new(File::new(s, false)) },
    Entry { name: MUTEX, clock: "kernel", make: |s| Box::new(LockedBucket::new(s.quota(), MachineClock)) },
    Entry { name: MUTEX, clock: "std Instant", make: |s| Box::new(LockedBucket::new(s.quota(), StdClock::new())) },
    Entry { name: PARKING_LOT, clock: "kernel", make: |s| Box::new(ParkingLot::new(s)) },
    Entry { name: GOVERNOR, clock: "quanta", make: |s| Box::new(RateLimiter::direct(governor_quota(s))) },
    Entry {
        name: GOVERNOR,
        clock: "std Instant",

        make: |s| Box::new(StdGovernor(RateLimiter::direct_with_clock(governor_quota(s), MonotonicClock))),
    },
    Entry { name: "better-bucket", clock: "std Instant", make: |s| Box::new(BetterBucket::new(s)) },
    Entry { name: "ratelimit", clock: "std Instant", make: |s| Box::new(Ratelimit::new(s)) },
    Entry { name: "leaky-bucket", clock: "std Instant", make: |s| Box::new(LeakyBucket::new(s)) },
    Entry { name: "atomic_token_bucket", clock: "std Instant", make: |s| Box::new(AtomicTokens::new(s)) },
    Entry { name: "subms-rate-limiter", clock: "std Instant", make: |s| Box::new(Subms::new(s)) },
    Entry { name: "gcra, in a std Mutex", clock: "std Instant", make: |s| Box::new(Gcra::new(s)) },
    Entry { name: "tor-basic-utils, in a std Mutex", clock: "std Instant", make: |s| Box::new(Tor::new(s)) },
];

/// Refreshed by a thread, a thousand times a second.
static CACHED: LazyLock<Refreshed> =
    LazyLock::new(|| CachedClock::every(Duration::from_millis(1)).expect("a thread for the clock"));

/// Reads the level in a loop.
macro_rules! looks {
    ($call:expr) => {
        fn looks(&self, calls: u32) -> Option<u32> {
            for _ in 0..calls {
                let _ = black_box($call(self));
            }
            Some(calls)
        }
    };
}

/// It has no such call.
macro_rules! no_looks {
    () => {
        fn looks(&self, _: u32) -> Option<u32> {
            None
        }
    };
}

impl<C: Clock + Send + Sync> Limiter for TokenBucket<C> {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        self.try_acquire(n).is_ok()
    }

    looks!(Self::available);
}

struct File {
    limiter: SharedRateLimiter,
    _folder: tempfile::TempDir,
}

impl File {
    fn new(setting: Setting, fast: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the file");
        let options = Options::new().fast_clock(fast);
        let limiter = options.create(folder.path().join("limit"), setting.quota()).expect("a file in it");
        Self { limiter, _folder: folder }
    }
}

impl Limiter for File {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        self.limiter.try_acquire(n).is_ok()
    }

    looks!(|file: &Self| file.limiter.available());
}

impl<C: Clock + Send + Sync> Limiter for LockedBucket<C> {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        self.try_acquire(n).is_some()
    }

    looks!(Self::available);
}

/// The clock of the standard library, in microseconds.
struct StdClock(Instant);

impl StdClock {
    fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for StdClock {
    fn now_micros(&self) -> u64 {
        let since = self.0.elapsed();
        since.as_secs() * 1_000_000 + u64::from(since.subsec_micros())
    }
}

struct ParkingLot {
    quota: Quota,
    state: parking_lot::Mutex<State>,
}

impl ParkingLot {
    fn new(setting: Setting) -> Self {
        let quota = setting.quota();
        let state = State::new(&quota, quota.capacity(), quota.moment(MachineClock.now_micros()));
        Self { quota, state: parking_lot::Mutex::new(state) }
    }
}

impl Limiter for ParkingLot {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        let mut state = self.state.lock();
        let next = state.refill(&self.quota, self.quota.moment(MachineClock.now_micros())).take(n);
        next.map(|next| *state = next).is_some()
    }

    looks!(|bucket: &Self| {
        let state = *bucket.state.lock();
        state.refill(&bucket.quota, bucket.quota.moment(MachineClock.now_micros())).tokens()
    });
}

fn non_zero(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("nobody takes 0")
}

fn governor_quota(setting: Setting) -> governor::Quota {
    let rate = if setting.period == Duration::from_secs(1) {
        governor::Quota::per_second(non_zero(setting.tokens))
    } else {
        governor::Quota::with_period(setting.period / setting.tokens).expect("not 0")
    };
    rate.allow_burst(non_zero(setting.burst))
}

impl Limiter for DefaultDirectRateLimiter {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        if n == 1 { self.check().is_ok() } else { matches!(self.check_n(non_zero(n)), Ok(Ok(()))) }
    }

    no_looks!();
}

struct StdGovernor(
    RateLimiter<
        governor::state::NotKeyed,
        governor::state::InMemoryState,
        MonotonicClock,
        governor::middleware::NoOpMiddleware<Instant>,
    >,
);

impl Limiter for StdGovernor {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        if n == 1 { self.0.check().is_ok() } else { matches!(self.0.check_n(non_zero(n)), Ok(Ok(()))) }
    }

    no_looks!();
}

struct BetterBucket(better_bucket::Bucket);

impl BetterBucket {
    fn new(setting: Setting) -> Self {
        let config = better_bucket::BucketConfig::new(setting.burst, setting.tokens, setting.period, setting.burst);
        Self(better_bucket::Bucket::from_config(config.expect("the settings are in range")))
    }
}

impl Limiter for BetterBucket {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        self.0.try_acquire(n)
    }

    looks!(|bucket: &Self| bucket.0.available());
}

struct Ratelimit(ratelimit::Ratelimiter);

impl Ratelimit {
    fn new(setting: Setting) -> Self {
        let builder = ratelimit::Ratelimiter::builder(setting.tokens.into()).period(setting.period);
        let builder = builder.max_tokens(setting.burst.into()).initial_available(setting.burst.into());
        Self(builder.build().expect("the settings are in range"))
    }
}

impl Limiter for Ratelimit {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        self.0.try_wait_n(n.into()).is_ok()
    }

    looks!(|bucket: &Self| bucket.0.available());
}

struct LeakyBucket(leaky_bucket::RateLimiter);

impl LeakyBucket {
    /// Refills of one token, or of a millisecond's worth: it has no shorter interval.
    fn new(setting: Setting) -> Self {
        let interval = (setting.period / setting.tokens).max(Duration::from_millis(1));
        let refill = (setting.rate() * interval.as_secs_f64()).round() as usize;
        let burst = setting.burst as usize;
        Self(leaky_bucket::RateLimiter::builder().max(burst).initial(burst).interval(interval).refill(refill).build())
    }
}

impl Limiter for LeakyBucket {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        self.0.try_acquire(n as usize)
    }

    looks!(|bucket: &Self| bucket.0.balance());
}

struct AtomicTokens(atomic_token_bucket::TokenBucket);

impl AtomicTokens {
    fn new(setting: Setting) -> Self {
        Self(atomic_token_bucket::TokenBucket::new(setting.burst.into(), setting.burst.into(), setting.rate()))
    }
}

impl Limiter for AtomicTokens {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        self.0.consume_tokens(n.into()).is_ok()
    }

    looks!(|bucket: &Self| bucket.0.current_tokens());
}

struct Subms(subms_rate_limiter::RateLimiter);

impl Subms {
    fn new(setting: Setting) -> Self {
        Self(subms_rate_limiter::RateLimiter::new(setting.rate(), setting.burst.into()))
    }
}

impl Limiter for Subms {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        if n == 1 { self.0.try_acquire() } else { self.0.try_acquire_n(n.into()) }
    }

    no_looks!();
}

struct Gcra {
    limit: gcra::RateLimit,
    state: std::sync::Mutex<gcra::GcraState>,
}

impl Gcra {
    /// Its burst is what its period allows.
    fn new(setting: Setting) -> Self {
        let period = setting.period.mul_f64(f64::from(setting.burst) / f64::from(setting.tokens));
        Self { limit: gcra::RateLimit::new(setting.burst, period), state: std::sync::Mutex::default() }
    }
}

impl Limiter for Gcra {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.check_and_modify(&self.limit, n).is_ok()
    }

    looks!(|bucket: &Self| {
        let state = bucket.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.remaining_resources(&bucket.limit, Instant::now())
    });
}

struct Tor(std::sync::Mutex<tor_basic_utils::token_bucket::TokenBucket<Instant>>);

impl Tor {
    /// Its rate is a whole number of tokens a second: the slow setting, of which nothing is granted, becomes none.
    fn new(setting: Setting) -> Self {
        let rate = setting.rate() as u64;
        let config = tor_basic_utils::token_bucket::TokenBucketConfig { rate, bucket_max: setting.burst.into() };
        Self(std::sync::Mutex::new(tor_basic_utils::token_bucket::TokenBucket::new(&config, Instant::now())))
    }
}

impl Limiter for Tor {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.refill(Instant::now());
        bucket.drain(n.into()).is_ok()
    }

    no_looks!();
}

/// Tokens of a lease, a thousand at a time, its own share of taking them included.
pub struct Leased(TokenBucket<FastClock>);

impl Leased {
    pub fn new(setting: Setting) -> Self {
        Self(TokenBucket::with_clock(setting.quota(), FastClock))
    }
}

impl Limiter for Leased {
    #[inline(always)]
    fn take(&self, n: u32) -> bool {
        self.0.try_acquire(n).is_ok()
    }

    fn takes(&self, calls: u32) -> u32 {
        let mut granted = 0;
        for _ in 0..calls.div_ceil(1000) {
            let Ok(mut lease) = self.0.lease(1000) else { continue };
            while black_box(lease.spend(1)).is_ok() {
                granted += 1;
            }
        }
        granted
    }

    no_looks!();
}
