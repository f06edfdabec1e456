//! What a sidecar costs while nothing happens: a hundred limiters in files, each with a policy that steers, for ten seconds.

#![allow(clippy::unwrap_used, reason = "a tool for measuring")]

use std::time::Duration;

use tollgate::{Aimd, Quota, SharedRateLimiter, Sidecar, SidecarBox, quota};

const SLOW: Quota = quota!(Quota::per_second(10));
const FAST: Quota = quota!(Quota::per_second(1000));
const TIME: Duration = Duration::from_secs(10);

fn main() {
    let folder = tempfile::tempdir().unwrap();
    for period in [1000, 100] {
        let sidecar = Sidecar::new(Duration::from_millis(period));
        let register = |number: u64| {
            let path = folder.path().join(format!("{period}-{number}"));
            let limiter = SharedRateLimiter::create(path, SLOW).unwrap().with_policy(Aimd::between(SLOW, FAST));
            sidecar.register(limiter).unwrap()
        };
        let limiters: Vec<SidecarBox<_>> = (0..100).map(register).collect();
        let before = processor_nanos();
        std::thread::sleep(TIME);
        let took = processor_nanos() - before;
        #[allow(clippy::cast_precision_loss, reason = "a percentage")]
        let percent = took as f64 / TIME.as_nanos() as f64 * 100.0;
        println!("{} limiters, looked at each {period} ms: {percent:.4} % of a core", limiters.len());
    }
}

/// The processor time of all threads of this process that live: the first field of /proc/PID/task/TID/schedstat.
fn processor_nanos() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let stats = tasks.map(|task| std::fs::read_to_string(task.path().join("schedstat")).unwrap());
    stats.map(|stat| stat.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}
