//! What a call costs, one thread: interleaved rounds, medians.

use std::time::{Duration, Instant};

use tollgate_benches::warm_up_the_fast_clock;

use crate::limiters::{ENTRIES, Entry, Leased, Limiter, Setting};

/// Always granted: more accrues than anybody takes.
pub const PLENTY: Setting = Setting::per_second(1_000_000_000, 1_000_000_000);
/// Refused, once the one token is gone.
pub const NOTHING: Setting = Setting { tokens: 1, period: Duration::from_hours(24), burst: 1 };

/// Nanoseconds for each call of one limiter.
pub struct Speed {
    pub entry: &'static Entry,
    pub grant: f64,
    pub refuse: f64,
    pub look: Option<f64>,
}

pub struct Speeds {
    pub calls: Vec<Speed>,
    /// Nanoseconds for a token of a lease.
    pub lease: f64,
}

impl Speeds {
    pub fn of(&self, name: &str, clock: &str) -> &Speed {
        let is = |speed: &&Speed| speed.entry.name == name && speed.entry.clock == clock;
        self.calls.iter().find(is).expect("the report names an entry")
    }
}

const CALLS: u32 = 100_000;

pub fn measure(rounds: usize) -> Speeds {
    let made = |setting| ENTRIES.iter().map(|entry| (entry.make)(setting)).collect::<Vec<_>>();
    let (plenty, nothing) = (made(PLENTY), made(NOTHING));
    for limiter in &nothing {
        while limiter.take(1) {}
    }
    let leased = Leased::new(PLENTY);
    warm_up_the_fast_clock();

    let mut samples = vec![(vec![], vec![], vec![]); ENTRIES.len()];
    let mut leases = vec![];
    for _ in 0..=rounds {
        for ((plenty, nothing), (grant, refuse, look)) in plenty.iter().zip(&nothing).zip(&mut samples) {
            grant.push(per_call(|| assert_eq!(plenty.takes(CALLS), CALLS, "always granted")));
            refuse.push(per_call(|| assert_eq!(nothing.takes(CALLS), 0, "never granted")));
            if nothing.looks(1).is_some() {
                look.push(per_call(|| _ = nothing.looks(CALLS)));
            }
        }
        leases.push(per_call(|| assert_eq!(leased.takes(CALLS), CALLS, "always granted")));
    }
    let speeds = ENTRIES.iter().zip(samples).map(|(entry, (grant, refuse, look))| Speed {
        entry,
        grant: median(grant),
        refuse: median(refuse),
        look: (!look.is_empty()).then(|| median(look)),
    });
    Speeds { calls: speeds.collect(), lease: median(leases) }
}

fn per_call(calls: impl FnOnce()) -> f64 {
    let start = Instant::now();
    calls();
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// Of all samples but the first, which warms up.
pub fn median(mut samples: Vec<f64>) -> f64 {
    let samples = &mut samples[1..];
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
