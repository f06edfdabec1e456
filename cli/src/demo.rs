//! `tollgate demo`: several processes hammer one file, and the sum is held against the bound.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tollgate::{Clock, FastClock, MachineClock, Options, Quota, SharedRateLimiter};

use crate::args::Hammer;
use crate::exit::Failure;

/// How often a worker reports.
const REPORT_MICROS: u64 = 100_000;
/// How many calls a worker makes between two looks at the clock.
const CALLS: u32 = 256;

/// What a worker has counted so far. Travels as a line of four numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    granted: u64,
    refused: u64,
    /// The clock before the first grant and after the last, in microseconds; 0 before there is one.
    first: u64,
    last: u64,
}

impl Count {
    fn line(&self) -> String {
        format!("{} {} {} {}", self.granted, self.refused, self.first, self.last)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split(' ').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Self { granted: next()?, refused: next()?, first: next()?, last: next()? })
    }

    fn add(self, other: Self) -> Self {
        let first =
            if self.first == 0 || (other.first != 0 && other.first < self.first) { other.first } else { self.first };
        Self {
            granted: self.granted + other.granted,
            refused: self.refused + other.refused,
            first,
            last: self.last.max(other.last),
        }
    }
}

/// Takes from the file at full speed. Says that it is ready, waits for a line on its input, and reports on its
/// output; ends when nobody listens any more.
pub(crate) fn work(file: &Path, seconds: u64, fast_clock: bool) -> Result<ExitCode, Failure> {
    let limiter = Options::new().fast_clock(fast_clock).open(file)?;
    let mut out = std::io::stdout();
    writeln!(out, "ready").map_err(|error| Failure::io("reporting", &error))?;
    let mut go = String::new();
    std::io::stdin().read_line(&mut go).map_err(|error| Failure::io("waiting for the start", &error))?;

    let mut count = Count::default();
    let mut now = MachineClock.now_micros();
    let end = now.saturating_add(seconds.saturating_mul(1_000_000));
    let mut report = now;
    while now < end {
        report += REPORT_MICROS;
        while now < report.min(end) {
            for _ in 0..CALLS {
                let before = MachineClock.now_micros();
                if limiter.try_acquire(1).is_ok() {
                    count.granted += 1;
                    count.last = MachineClock.now_micros();
                    count.first = if count.first == 0 { before } else { count.first };
                } else {
                    count.refused += 1;
                }
            }
            now = MachineClock.now_micros();
        }
        if writeln!(out, "{}", count.line()).is_err() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A worker process, which dies with this handle.
struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(file: &Path, demo: &Hammer) -> std::io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("demo-worker")
            .arg("--file")
            .arg(file)
            .args(["--seconds", &demo.seconds.to_string()])
            .args(demo.fast_clock.then_some("--fast-clock"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or(std::io::ErrorKind::BrokenPipe)?;
        let mut worker = Self { child, input, lines: BufReader::new(output).lines() };
        match worker.lines.next().transpose()?.as_deref() {
            Some("ready") => Ok(worker),
            _ => Err(std::io::Error::other("it said nothing")),
        }
    }

    /// Reads the reports to the last, showing each.
    fn follow(&mut self, show: &Shown) -> Option<Count> {
        let mut latest = None;
        for line in self.lines.by_ref() {
            let count = Count::parse(&line.ok()?)?;
            show.count(&count);
            latest = Some(count);
        }
        self.child.wait().ok()?.success().then_some(latest?)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only for a child that has ended and been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One worker's line on a terminal; without one, nothing until the end.
struct Shown {
    bar: ProgressBar,
    start: u64,
}

impl Shown {
    fn count(&self, count: &Count) {
        let elapsed = MachineClock.now_micros().saturating_sub(self.start);
        self.bar.set_position(elapsed / 1000);
        self.bar.set_message(words(count, elapsed));
    }
}

fn words(count: &Count, micros: u64) -> String {
    let rate = count.granted.saturating_mul(1_000_000) / micros.max(1);
    format!("{:>9} granted {:>11} refused {:>9}/s", count.granted, count.refused, rate)
}

/// Runs the workers and judges the sum.
pub(crate) fn demo(demo: &Hammer) -> Result<ExitCode, Failure> {
    let quota = demo.rate.quota(Some(demo.burst)).map_err(|error| Failure::usage(error.to_string()))?;
    let say = |text: String| writeln!(std::io::stdout(), "{text}").map_err(|error| Failure::io("writing", &error));
    say(format!("{} processes share one file for {} s: {quota}", demo.processes, demo.seconds))?;

    let starting = |error| Failure::io("starting the demo", &error);
    let folder = tempfile::Builder::new().prefix("tollgate-demo-").tempdir().map_err(starting)?;
    let file = folder.path().join("limit");
    SharedRateLimiter::create(&file, quota)?;
    let workers: Result<Vec<Worker>, _> = (0..demo.processes).map(|_| Worker::start(&file, demo)).collect();
    let mut workers = workers.map_err(starting)?;
    // All have it open: the file needs its name no longer, and whatever happens now, nothing is left of it.
    folder.close().map_err(starting)?;

    let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
    let start = MachineClock.now_micros();
    for worker in &mut workers {
        // Closing the input starts it.
        drop(worker.input.take());
    }
    let counts: Vec<Option<Count>> = std::thread::scope(|scope| {
        let screen = &screen;
        let followers: Vec<_> = workers
            .iter_mut()
            .map(|worker| {
                let bar = screen.add(ProgressBar::new(demo.seconds.saturating_mul(1000)));
                bar.set_style(style());
                scope.spawn(move || worker.follow(&Shown { bar, start }))
            })
            .collect();
        followers.into_iter().map(|follower| follower.join().ok().flatten()).collect()
    });
    // Nothing more is drawn; the lines that remain are printed below.
    let _ = screen.clear();

    let mut sum = Count::default();
    for (number, count) in (1..).zip(counts) {
        let count = count.ok_or_else(|| Failure::io("the demo", &std::io::Error::other("a worker died")))?;
        say(format!("process {number:>3} {}", words(&count, count.last.saturating_sub(count.first))))?;
        sum = sum.add(count);
    }
    let micros = sum.last.saturating_sub(sum.first);
    let window = Duration::from_micros(micros);
    // The first reading may have been early by what a clock is off by, and the last one late.
    let error = if demo.fast_clock { 2 * FastClock::MAX_ERROR } else { Duration::ZERO };
    let bound = bound(&quota, window + error);
    say(format!("together    {}", words(&sum, micros)))?;
    let within = u128::from(sum.granted) <= bound;
    say(format!(
        "granted {} of at most {bound} (burst + rate × {:?}): {}",
        sum.granted,
        window,
        if within { closeness(sum.granted, bound) } else { "TOO MANY".to_owned() },
    ))?;
    Ok(if within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The most that may be granted in a window: capacity + rate × (window + one reading of the clock), rounded down.
fn bound(quota: &Quota, window: Duration) -> u128 {
    let nanos = window.as_nanos() + 1000;
    u128::from(quota.capacity()) + u128::from(quota.tokens()) * nanos / quota.period().as_nanos()
}

/// How much of the bound was granted, rounded down, so that 100 % is all of it.
fn closeness(granted: u64, bound: u128) -> String {
    let thousandths = u128::from(granted) * 100_000 / bound.max(1);
    format!("within the limit, {}.{:03} % of it used", thousandths / 1000, thousandths % 1000)
}

fn style() -> ProgressStyle {
    // The template is constant, and the default is what is left should it be wrong.
    ProgressStyle::with_template("{bar:24} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar())
}
