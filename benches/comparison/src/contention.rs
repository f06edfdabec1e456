//! Several threads, and several processes, on one bucket.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use tollgate::Options;
use tollgate_benches::warm_up_the_fast_clock;
use tollgate_core::Quota;

use crate::limiters::{ENTRIES, FAST, FILE, GOVERNOR, Leased, Limiter, MUTEX, PARKING_LOT};
use crate::speed::{NOTHING, PLENTY, median};

pub const WORKERS: [usize; 4] = [1, 2, 4, 8];

/// The names that the report refers to.
pub const LEASE: &str = "tollgate, a lease for each thread";
pub const PROCESSES: &str = "tollgate, in a file, processes";

/// Millions of calls a second, for each number of workers.
pub struct Contention {
    pub name: String,
    /// Whether the calls are granted; or else all are refused.
    pub granted: bool,
    pub clock: &'static str,
    pub rates: Vec<f64>,
}

const COMPARED: [(&str, &str); 8] = [
    (FAST, "FastClock"),
    (FAST, "kernel"),
    (FILE, "FastClock"),
    (MUTEX, "kernel"),
    (PARKING_LOT, "kernel"),
    (GOVERNOR, "quanta"),
    ("better-bucket", "std Instant"),
    ("ratelimit", "std Instant"),
];

/// Whose refused calls are measured, too.
const REFUSING: [(&str, &str); 4] =
    [(FAST, "FastClock"), (MUTEX, "kernel"), (GOVERNOR, "quanta"), ("ratelimit", "std Instant")];

/// How long they run.
const TIME: Duration = Duration::from_millis(60);

/// What is measured: one limiter for threads, or a file for processes.
enum Subject {
    Threads(Box<dyn Limiter>),
    Processes { fast: bool },
}

pub fn measure(rounds: usize) -> Vec<Contention> {
    let made = |(name, clock): (&str, &str), setting| {
        let entry = ENTRIES.iter().find(|entry| entry.name == name && entry.clock == clock).expect("it is there");
        let limiter = (entry.make)(setting);
        (name.to_owned(), entry.clock, Subject::Threads(limiter))
    };
    let mut subjects: Vec<_> = COMPARED.into_iter().map(|named| (true, made(named, PLENTY))).collect();
    let leased = Subject::Threads(Box::new(Leased::new(PLENTY)));
    subjects.push((true, (LEASE.to_owned(), "FastClock", leased)));
    for (fast, clock) in [(true, "FastClock"), (false, "kernel")] {
        subjects.push((true, (PROCESSES.to_owned(), clock, Subject::Processes { fast })));
    }
    for named in REFUSING {
        let (name, clock, subject) = made(named, NOTHING);
        if let Subject::Threads(limiter) = &subject {
            while limiter.take(1) {}
        }
        subjects.push((false, (name, clock, subject)));
    }
    warm_up_the_fast_clock();

    let mut samples = vec![WORKERS.map(|_| vec![]); subjects.len()];
    for _ in 0..=rounds {
        for ((_, (_, _, subject)), samples) in subjects.iter().zip(&mut samples) {
            for (workers, samples) in WORKERS.into_iter().zip(samples) {
                samples.push(match subject {
                    Subject::Threads(limiter) => threads(&**limiter, workers),
                    Subject::Processes { fast } => processes(*fast, workers),
                });
            }
        }
    }
    let named = subjects.into_iter().zip(samples);
    named
        .map(|((granted, (name, clock, _)), rates)| Contention {
            name,
            granted,
            clock,
            rates: rates.map(median).to_vec(),
        })
        .collect()
}

fn threads(limiter: &dyn Limiter, workers: usize) -> f64 {
    let barrier = Barrier::new(workers);
    std::thread::scope(|scope| {
        let work = || {
            barrier.wait();
            calls_a_second(limiter)
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or(f64::NAN)).sum::<f64>() / 1e6
    })
}

/// Calls for a while.
fn calls_a_second(limiter: &dyn Limiter) -> f64 {
    const CALLS: u32 = 1000;
    let start = Instant::now();
    let mut calls = 0.0;
    loop {
        limiter.takes(CALLS);
        calls += f64::from(CALLS);
        let elapsed = start.elapsed();
        if elapsed > TIME {
            return calls / elapsed.as_secs_f64();
        }
    }
}

fn processes(fast: bool, workers: usize) -> f64 {
    let folder = tempfile::tempdir().expect("a folder for the file");
    let path = folder.path().join("limit");
    let quota = Quota::new(PLENTY.tokens, PLENTY.period).expect("the setting is in range");
    drop(tollgate::SharedRateLimiter::create(&path, quota).expect("a file in it"));
    let mut workers: Vec<Child> = (0..workers).map(|_| spawn(&path, fast)).collect();
    // All are ready; then all start.
    let mut outputs = vec![];
    for worker in &mut workers {
        let mut output = BufReader::new(worker.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a worker says that it is ready");
        outputs.push(output);
    }
    for worker in &mut workers {
        drop(worker.stdin.take());
    }
    let mut sum = 0.0;
    for (worker, output) in workers.iter_mut().zip(outputs) {
        let line = output.lines().next().expect("a line").expect("a worker tells its rate");
        sum += line.parse::<f64>().expect("a number");
        worker.wait().expect("a worker ends");
    }
    sum / 1e6
}

fn spawn(path: &Path, fast: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg("--worker").arg(path).args(fast.then_some("--fast"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process")
}

/// What a spawned process does.
pub fn worker(path: &Path, fast: bool) {
    struct Opened(tollgate::SharedRateLimiter);
    impl Limiter for Opened {
        fn take(&self, n: u32) -> bool {
            self.0.try_acquire(n).is_ok()
        }
        fn looks(&self, _: u32) -> Option<u32> {
            None
        }
    }
    let limiter = Opened(Options::new().fast_clock(fast).open(path).expect("the parent has made it"));
    warm_up_the_fast_clock();
    limiter.takes(1000);
    println!("ready");
    std::io::stdout().flush().expect("a pipe");
    let mut rest = String::new();
    std::io::stdin().read_line(&mut rest).expect("a pipe");
    println!("{}", calls_a_second(&limiter));
}
