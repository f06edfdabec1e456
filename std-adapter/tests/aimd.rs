//! A real downstream that serves so many requests a second and no more, and four real processes that share a limit in front of
//! it: the limit finds what the downstream can take, from below and from above, and follows it.
//!
//! With the variable TOLLGATE_PLOT, it draws what happened into the file of that name (SVG).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod children;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin};
use std::time::Duration;

use children::start;
use tollgate::{Aimd, Clock, Count, MachineClock, Outcome, Quota, SharedRateLimiter, Sidecar, quota};

const CLIENTS: usize = 4;
/// How often the clients' sidecars look.
const PERIOD: Duration = Duration::from_millis(50);
/// How long the limit is watched once it should be there.
const WINDOW: Duration = Duration::from_secs(4);

/// What a child does, told by the variable CHILD; a test that passes when it is not set.
#[test]
fn child() {
    let Some((role, path)) = children::role() else { return };
    match role.as_str() {
        "serves" => serve(),
        "asks" => ask(&path),
        role => panic!("no such role: {role}"),
    }
}

/// As much as is served, for as much as comes at once when the clients were all held up.
fn served(rate: u32) -> Quota {
    Quota::per_second(rate).unwrap().with_burst(10).unwrap()
}

/// Serves so many requests a second as its input says, and answers all others with an overload.
fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let capacity = SharedRateLimiter::in_memory(served(1)).unwrap();
    println!("\nport {}", listener.local_addr().unwrap().port());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for line in std::io::stdin().lines() {
                capacity.set_quota(served(line.unwrap().parse().unwrap())).unwrap();
            }
            std::process::exit(0);
        });
        for client in listener.incoming() {
            let capacity = &capacity;
            scope.spawn(move || {
                let mut client = client.unwrap();
                client.set_nodelay(true).unwrap();
                let mut request = [0];
                while client.read_exact(&mut request).is_ok() {
                    let answer = if capacity.try_acquire(1).is_ok() { b"+" } else { b"-" };
                    client.write_all(answer).unwrap();
                }
            });
        }
    });
}

/// Sends requests as fast as the limit allows, one after the other, and reports the answers.
fn ask(path: &std::path::Path) {
    let limiter = SharedRateLimiter::open(path).unwrap();
    let policy = Aimd::between(quota!(Quota::per_second(20)), quota!(Quota::per_second(5000)));
    let limiter = limiter.with_policy(policy.increase(60.0).decrease(0.95));
    let limiter = Sidecar::new(PERIOD).register(limiter).unwrap();
    let port: u16 = std::env::var("PORT").unwrap().parse().unwrap();
    let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
    server.set_nodelay(true).unwrap();
    let mut answer = [0];
    loop {
        limiter.acquire(1).unwrap();
        // The server ends when the test does.
        if server.write_all(b"?").and_then(|()| server.read_exact(&mut answer)).is_err() {
            return;
        }
        limiter.report(if answer == *b"+" { Outcome::Ok } else { Outcome::Overload });
    }
}

/// Killed when it is dropped.
struct Alive(Child);

impl Drop for Alive {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What was seen at a time.
struct Sample {
    seconds: f64,
    served_at_most: f64,
    limit: f64,
}

/// The test's view of all this.
struct Scene {
    limiter: SharedRateLimiter,
    capacity: ChildStdin,
    begun: u64,
    samples: Vec<Sample>,
    _processes: Vec<Alive>,
}

impl Scene {
    fn new(path: &std::path::Path, first: Quota) -> Self {
        let limiter = SharedRateLimiter::create(path, first).unwrap();
        let mut server = start("serves", path);
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = lines.find_map(|line| line.strip_prefix("port ").map(str::to_owned)).unwrap();
        let capacity = server.stdin.take().unwrap();
        let mut processes = vec![Alive(server)];
        for _ in 0..CLIENTS {
            let mut command = children::command("asks", path);
            processes.push(Alive(command.env("PORT", &port).spawn().unwrap()));
        }
        Self { limiter, capacity, begun: MachineClock.now_micros(), samples: Vec::new(), _processes: processes }
    }

    /// Lets the downstream serve so many a second, waits until the limit has come there (from below, it has been above once),
    /// and returns what it was on average after that, and how many requests a second were served.
    #[allow(clippy::cast_precision_loss, reason = "figures to compare")]
    fn settle(&mut self, rate: u32) -> (f64, f64) {
        writeln!(self.capacity, "{rate}").unwrap();
        let wanted = f64::from(rate);
        let start = MachineClock.now_micros();
        for below in [true, false] {
            while (self.sample(wanted) < wanted) == below {
                assert!(MachineClock.now_micros() - start < 120_000_000, "the limit never came to {rate}");
            }
        }
        let (start, first) = (MachineClock.now_micros(), self.samples.len());
        let before = self.limiter.counts();
        while Duration::from_micros(MachineClock.now_micros() - start) < WINDOW {
            self.sample(wanted);
        }
        let seconds = (MachineClock.now_micros() - start) as f64 / 1e6;
        let ok = self.limiter.counts().since(&before).get(Count::Ok) as f64 / seconds;
        let limits: Vec<_> = self.samples.iter().skip(first).map(|sample| sample.limit).collect();
        (limits.iter().sum::<f64>() / limits.len() as f64, ok)
    }

    /// Returns the limit's rate, a little later.
    fn sample(&mut self, served_at_most: f64) -> f64 {
        std::thread::sleep(Duration::from_millis(10));
        let quota = self.limiter.quota();
        let limit = f64::from(quota.tokens()) / quota.period().as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "seconds of a chart")]
        let seconds = (MachineClock.now_micros() - self.begun) as f64 / 1e6;
        self.samples.push(Sample { seconds, served_at_most, limit });
        limit
    }
}

#[test]
fn four_processes_find_what_the_downstream_can_take() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(&folder.path().join("limit"), quota!(Quota::per_second(150), burst 2));
    let mut outcomes = Vec::new();
    // From below; a step up; a step down, from above.
    for rate in [400, 800, 300] {
        let (limit, ok) = scene.settle(rate);
        println!("of {rate} a second: the limit was {limit:.0} on average, and {ok:.0} a second were served");
        outcomes.push((f64::from(rate), limit, ok));
    }
    if let Some(file) = std::env::var_os("TOLLGATE_PLOT") {
        plot(&scene.samples, std::path::Path::new(&file));
    }
    for (rate, limit, ok) in outcomes {
        assert!((limit / rate - 1.0).abs() < 0.1, "the limit was {limit} of {rate}");
        assert!((ok / rate - 1.0).abs() < 0.1, "{ok} were served of {rate}");
    }
    let attached = scene.limiter.attached();
    assert_eq!(attached.len(), CLIENTS + 1, "{attached:?}");
}

fn plot(samples: &[Sample], file: &std::path::Path) {
    use plotters::prelude::{BLUE, ChartBuilder, IntoDrawingArea, LineSeries, PathElement, RED, SVGBackend, WHITE};
    let last = samples.last().unwrap().seconds;
    let area = SVGBackend::new(file, (900, 400)).into_drawing_area();
    area.fill(&WHITE).unwrap();
    let mut chart = ChartBuilder::on(&area);
    let chart = chart.margin(12).x_label_area_size(36).y_label_area_size(48);
    let mut chart = chart.build_cartesian_2d(0.0..last, 0.0..1000.0).unwrap();
    chart.configure_mesh().x_desc("seconds").y_desc("requests a second").draw().unwrap();
    let limit = samples.iter().map(|sample| (sample.seconds, sample.limit));
    let served = samples.iter().map(|sample| (sample.seconds, sample.served_at_most));
    let legend = |color| move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color);
    chart.draw_series(LineSeries::new(served, RED)).unwrap().label("what is served").legend(legend(RED));
    chart.draw_series(LineSeries::new(limit, BLUE)).unwrap().label("the limit").legend(legend(BLUE));
    chart.configure_series_labels().border_style(RED).background_style(WHITE).draw().unwrap();
    area.present().unwrap();
}
