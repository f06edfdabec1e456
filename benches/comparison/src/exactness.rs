//! How exact a limiter is, by its own clock: after idle time, and when it is asked at unfortunate times.

use std::time::{Duration, Instant};

use crate::limiters::{ENTRIES, Entry, Limiter, Setting};

/// What a limiter granted, against what it should have.
pub struct Exactness {
    pub entry: &'static Entry,
    /// Tokens above burst + rate × time in a burst after idle time; 0 where it kept within.
    pub over: f64,
    /// Off the rate, in per cent: asked again and again.
    pub hammered: f64,
    /// … asked at intervals of almost two tokens' time.
    pub polled: f64,
    /// … at a slow rate, at intervals of almost two millionths of a token's time.
    pub slow: f64,
    /// … at a rate whose interval is no whole number of nanoseconds, a thousand tokens at a time.
    pub fast: f64,
}

impl Exactness {
    /// Within half a per cent of the rate, and not over.
    pub fn is_exact(&self) -> bool {
        self.over == 0.0 && [self.hammered, self.polled, self.slow, self.fast].iter().all(|off| off.abs() < 0.5)
    }
}

pub fn measure() -> Vec<Exactness> {
    let exactness = ENTRIES.iter().map(|entry| Exactness {
        entry,
        over: least((0..3).map(|_| over(&*(entry.make)(Setting::per_second(1000, 100))))),
        hammered: least((0..3).map(|_| off(entry, Setting::per_second(800_000, 400_000), 1, Duration::ZERO))),
        polled: least((0..3).map(|_| off(entry, Setting::per_second(1000, 500), 1, Duration::from_micros(1990)))),
        slow: off(entry, Setting::per_second(1, 1), 1, Duration::from_nanos(1950)),
        fast: least((0..3).map(|_| off(entry, Setting::per_second(400_000_000, 200_000_000), 1000, Duration::ZERO))),
    });
    exactness.collect()
}

/// The one nearest to 0: noise of the machine adds to what the limiter does.
fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.min_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(f64::NAN)
}

/// Lets a bucket of 100 tokens idle until it is full, then takes all for five milliseconds.
fn over(limiter: &dyn Limiter) -> f64 {
    while limiter.take(1) {}
    std::thread::sleep(Duration::from_millis(250));
    let start = Instant::now();
    let mut granted = 0.0;
    while start.elapsed() < Duration::from_millis(5) {
        granted += f64::from(u8::from(limiter.take(1)));
    }
    let most = 100.0 + 1000.0 * start.elapsed().as_secs_f64();
    // One token may fall on either side of the reading.
    if granted > most + 1.0 { granted - most } else { 0.0 }
}

/// Takes `n` tokens each `interval` from a drained bucket, for a while; returns how far off the rate that was, in per
/// cent.
fn off(entry: &Entry, setting: Setting, n: u32, interval: Duration) -> f64 {
    let limiter = (entry.make)(setting);
    let mut all = setting.burst;
    while all >= n {
        if !limiter.take(all) {
            all /= 2;
        }
    }
    let rate = f64::from(setting.tokens) / setting.period.as_secs_f64();
    let start = Instant::now();
    let mut next = start;
    let mut granted = 0.0;
    loop {
        next += interval;
        while Instant::now() < next {
            std::hint::spin_loop();
        }
        while limiter.take(n) {
            granted += f64::from(n);
            if !interval.is_zero() {
                // All that is there, one after the other, and then a refusal.
                continue;
            }
        }
        let elapsed = start.elapsed();
        // Long enough for six tokens.
        if elapsed > Duration::from_millis(300).max(setting.period * 6 / setting.tokens) {
            let due = rate * elapsed.as_secs_f64();
            // A token or a take that is not due yet is not missing.
            let missing = due - granted;
            let whole = if missing > 0.0 { (missing - f64::from(n)).max(0.0) } else { missing };
            return -100.0 * whole / due;
        }
    }
}
