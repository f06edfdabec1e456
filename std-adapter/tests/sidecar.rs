//! Sidecars: what they steer, and that they hold nobody up: at a drop, at a fork, at the exit, at a death.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test of real threads in real time")]

mod children;

use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use children::start;
use tollgate::{Count, Policy, Quota, SharedRateLimiter, Sidecar, SidecarBox, Stats, quota};

const BEFORE: Quota = quota!(Quota::per_second(10));
const AFTER: Quota = quota!(Quota::per_second(20));
const SHORT: Duration = Duration::from_millis(5);
/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sets a quota, and counts how often it was asked.
#[derive(Clone, Debug)]
struct Sets(Quota, Arc<AtomicU32>);

impl Sets {
    fn new(quota: Quota) -> Self {
        Self(quota, Arc::default())
    }

    fn asked(&self) -> u32 {
        self.1.load(SeqCst)
    }
}

impl Policy for Sets {
    fn decide(&self, _: &Stats, current: Quota) -> Option<Quota> {
        self.1.fetch_add(1, SeqCst);
        (current != self.0).then_some(self.0)
    }
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}: not in a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn in_memory(policy: impl Policy + 'static) -> SharedRateLimiter {
    SharedRateLimiter::in_memory(BEFORE).unwrap().with_policy(policy)
}

/// What a child does, told by the variable CHILD; a test that passes when it is not set.
#[test]
fn child() {
    let Some((role, path)) = children::role() else { return };
    match role.as_str() {
        "forks" => forks(),
        "copies" => copies(),
        "exits" => {
            let limiter = SidecarBox::new(in_memory(Sets::new(AFTER))).unwrap();
            Sidecar::global().unwrap().set_period(SHORT);
            wait_until("steered", || limiter.quota() == AFTER);
            std::process::exit(7);
        }
        "steers" => {
            let limiter = SharedRateLimiter::open(path).unwrap().with_policy(Sets::new(AFTER));
            let _limiter = Sidecar::new(SHORT).register(limiter).unwrap();
            std::thread::sleep(PATIENCE);
        }
        role => panic!("no such role: {role}"),
    }
}

/// Forks while the sidecar is at work, again and again. Each child uses the limiter, drops the box of its parent, and
/// registers one of its own.
fn forks() {
    Sidecar::global().unwrap().set_period(Duration::from_millis(1));
    let parents = SidecarBox::new(in_memory(Sets::new(AFTER))).unwrap();
    let mut parents = Some(parents);
    for round in 0..50 {
        // SAFETY: fork(2) has no precondition. The child goes on as this thread alone, and takes no lock that other threads
        // of its parent may hold: that is what is tested. (Those of the allocator are taken care of by the C library.)
        let process = unsafe { libc::fork() };
        assert!(process >= 0);
        if process == 0 {
            let limiter = parents.take().unwrap();
            let _ = limiter.try_acquire(1);
            drop(limiter);
            let own = SidecarBox::new(in_memory(Sets::new(AFTER))).unwrap();
            Sidecar::global().unwrap().set_period(SHORT);
            wait_until("steered", || own.quota() == AFTER);
            drop(own);
            // SAFETY: _exit(2) has no precondition.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: waitpid(2) asks for a valid pointer: a local variable.
        assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
        assert_eq!(status, 0, "round {round}");
    }
    // The children took seats of their own, and left no one in the parent's.
    let parents = parents.unwrap();
    assert_eq!(parents.attached().iter().filter(|process| process.id == Some(std::process::id())).count(), 1);
}

/// Forks, and does something in the child; tells how that ended.
fn forked(child: impl FnOnce() -> bool) -> i32 {
    // SAFETY: as above.
    let process = unsafe { libc::fork() };
    assert!(process >= 0);
    if process == 0 {
        let status = i32::from(!child());
        // SAFETY: _exit(2) has no precondition.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: as above.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    status
}

/// What a child gets of its parent: a limit in memory, which they share; and copies of sidecars, which are none.
fn copies() {
    let limiter = SharedRateLimiter::in_memory(Quota::per_hour(10).unwrap()).unwrap();
    assert_eq!(forked(|| limiter.try_acquire(7) == Ok(3)), 0);
    assert_eq!(limiter.available(), Ok(3));
    assert_eq!(limiter.counts().get(Count::GrantedTokens), 7);
    let sidecars = [Sidecar::new(SHORT), Sidecar::global().unwrap()];
    let _busy = sidecars.each_ref().map(|sidecar| sidecar.register(in_memory(Sets::new(AFTER))).unwrap());
    for sidecar in &sidecars {
        let child = || {
            sidecar.set_period(SHORT);
            sidecar.register(in_memory(Sets::new(AFTER))).is_err()
        };
        assert_eq!(forked(child), 0);
    }
}

#[test]
fn a_child_gets_the_limit_and_no_sidecar() {
    let folder = tempfile::tempdir().unwrap();
    assert!(end_of(start("copies", folder.path())).success());
}

/// Waits for a child's end; kills it, and fails, if it takes too long.
fn end_of(mut child: Child) -> std::process::ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_fork_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    assert!(end_of(start("forks", folder.path())).success());
}

#[test]
fn an_exit_waits_for_nobody() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(end_of(start("exits", folder.path())).code(), Some(7));
}

#[test]
fn a_drop_waits_for_a_look_in_progress() {
    #[derive(Debug)]
    struct Slow(Arc<AtomicU32>);
    impl Policy for Slow {
        fn decide(&self, _: &Stats, _: Quota) -> Option<Quota> {
            self.0.fetch_add(1, SeqCst);
            std::thread::sleep(Duration::from_millis(30));
            self.0.fetch_add(1, SeqCst);
            None
        }
    }
    for _ in 0..5 {
        let steps = Arc::<AtomicU32>::default();
        let sidecar = Sidecar::new(SHORT);
        let limiter = sidecar.register(in_memory(Slow(steps.clone()))).unwrap();
        let other = sidecar.register(in_memory(Sets::new(AFTER))).unwrap();
        wait_until("in a look", || steps.load(SeqCst) % 2 == 1);
        drop(limiter);
        let seen = steps.load(SeqCst);
        assert_eq!(seen % 2, 0, "in the middle of a look");
        // The other one is looked at as before, and this one no more.
        wait_until("steered", || other.quota() == AFTER);
        std::thread::sleep(4 * SHORT);
        assert_eq!(steps.load(SeqCst), seen);
    }
}

/// The thread ends with the last box, and another one starts with the next.
#[test]
fn the_thread_lives_while_it_is_needed() {
    let threads = || {
        let names = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = names.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.starts_with("the-only-one")).count()
    };
    #[derive(Debug)]
    struct Names;
    impl Policy for Names {
        fn decide(&self, _: &Stats, _: Quota) -> Option<Quota> {
            std::fs::write("/proc/thread-self/comm", "the-only-one").unwrap();
            None
        }
    }
    let sidecar = Sidecar::new(SHORT);
    for _ in 0..3 {
        let boxes = [(); 3].map(|()| sidecar.register(in_memory(Names)).unwrap());
        wait_until("looked at", || threads() == 1);
        drop(boxes);
        // It has been joined; the kernel may take a moment to forget it.
        wait_until("ended", || threads() == 0);
    }
}

#[test]
fn a_policy_that_panics_harms_no_other() {
    #[derive(Debug)]
    struct Panics;
    impl Policy for Panics {
        fn decide(&self, _: &Stats, _: Quota) -> Option<Quota> {
            panic!("as it is meant to")
        }
    }
    /// The same before it is even asked.
    #[derive(Debug)]
    struct PanicsFirst;
    impl Policy for PanicsFirst {
        fn decide(&self, _: &Stats, _: Quota) -> Option<Quota> {
            None
        }
        fn steers(&self) -> bool {
            panic!("as it is meant to")
        }
    }
    let sidecar = Sidecar::new(SHORT);
    let _bad = sidecar.register(in_memory(Panics)).unwrap();
    let _worse = sidecar.register(in_memory(PanicsFirst)).unwrap();
    let good = sidecar.register(in_memory(Sets::new(AFTER))).unwrap();
    wait_until("steered", || good.quota() == AFTER);
    good.set_quota(BEFORE).unwrap();
    wait_until("steered again", || good.quota() == AFTER);
}

/// A policy drops the last box of its own sidecar, in the sidecar's thread.
#[test]
fn a_policy_may_drop_its_own_box() {
    type Own = std::sync::Mutex<Option<SidecarBox<SharedRateLimiter>>>;
    #[derive(Clone, Debug)]
    struct Drops(Arc<Own>, Arc<AtomicU32>);
    impl Policy for Drops {
        fn decide(&self, _: &Stats, _: Quota) -> Option<Quota> {
            self.1.fetch_add(1, SeqCst);
            drop(self.0.lock().unwrap().take());
            None
        }
    }
    let policy = Drops(Arc::default(), Arc::default());
    let sidecar = Sidecar::new(SHORT);
    let mut own = policy.0.lock().unwrap();
    *own = Some(sidecar.register(in_memory(policy.clone())).unwrap());
    drop(own);
    wait_until("dropped", || policy.1.load(SeqCst) > 0 && policy.0.lock().unwrap().is_none());
    // And it works for the next.
    let next = sidecar.register(in_memory(Sets::new(AFTER))).unwrap();
    wait_until("steered", || next.quota() == AFTER);
}

/// A policy drops the box of another one: that is not asked again, and leaves the steering to others.
#[test]
fn a_policy_may_drop_another_box() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    SharedRateLimiter::create(&path, BEFORE).unwrap();
    let open = |policy: &Sets| SharedRateLimiter::open(&path).unwrap().with_policy(policy.clone());
    #[derive(Debug)]
    struct Drops(std::sync::Mutex<Option<SidecarBox<SharedRateLimiter>>>, Arc<AtomicU32>, SharedRateLimiter);
    impl Policy for Drops {
        fn decide(&self, _: &Stats, _: Quota) -> Option<Quota> {
            if let Some(other) = self.0.lock().unwrap().take() {
                let lease = || self.2.header().unwrap().lease().holder(self.2.now_micros());
                // It is of three seconds.
                assert!(lease().is_some());
                drop(other);
                assert_eq!(lease(), None);
                self.1.fetch_add(1, SeqCst);
            }
            None
        }
    }
    let sidecar = Sidecar::new(Duration::from_secs(1));
    let (dropped, dropping) = (Sets::new(AFTER), Arc::<AtomicU32>::default());
    let other = std::sync::Mutex::new(None);
    let drops = Drops(other, dropping.clone(), SharedRateLimiter::open(&path).unwrap());
    // First in the line, so that the look goes on to the one that it has dropped.
    let policy = Arc::new(drops);
    #[derive(Debug)]
    struct Shared(Arc<Drops>);
    impl Policy for Shared {
        fn decide(&self, stats: &Stats, current: Quota) -> Option<Quota> {
            self.0.decide(stats, current)
        }
    }
    let _first = sidecar.register(in_memory(Shared(policy.clone()))).unwrap();
    let other = sidecar.register(open(&dropped)).unwrap();
    wait_until("the other one steers", || dropped.asked() > 0);
    *policy.0.lock().unwrap() = Some(other);
    wait_until("dropped", || dropping.load(SeqCst) > 0);
    let asked = dropped.asked();
    sidecar.set_period(SHORT);
    std::thread::sleep(4 * SHORT);
    assert_eq!(dropped.asked(), asked, "it is asked no more");
}

/// A policy that panics leaves the steering to others.
#[test]
fn a_policy_that_panics_does_not_steer() {
    #[derive(Debug)]
    struct Panics;
    impl Policy for Panics {
        fn decide(&self, _: &Stats, _: Quota) -> Option<Quota> {
            panic!("as it is meant to")
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    let limiter = SharedRateLimiter::create(&path, BEFORE).unwrap();
    let policy = Sets::new(AFTER);
    let other = SharedRateLimiter::open(&path).unwrap().with_policy(policy.clone());
    let _panics = Sidecar::new(SHORT).register(limiter.with_policy(Panics)).unwrap();
    let _other = Sidecar::new(SHORT).register(other).unwrap();
    wait_until("the other one steers", || policy.asked() > 0);
}

/// Who can't put in force what it decides leaves the steering to who can.
#[test]
fn who_can_not_apply_does_not_steer() {
    let folder = tempfile::tempdir().unwrap();
    let [here, elsewhere] = ["here", "elsewhere"].map(|name| folder.path().join(name));
    let limiter = SharedRateLimiter::create(&here, BEFORE).unwrap();
    std::fs::hard_link(&here, &elsewhere).unwrap();
    let can = SharedRateLimiter::open(&elsewhere).unwrap();
    std::fs::remove_file(&here).unwrap();
    let [cannot, could] = [Sets::new(AFTER), Sets::new(AFTER)];
    let sidecar = Sidecar::new(SHORT);
    let _cannot = sidecar.register(limiter.with_policy(cannot.clone())).unwrap();
    wait_until("asked", || cannot.asked() > 0);
    let can = Sidecar::new(SHORT).register(can.with_policy(could.clone())).unwrap();
    wait_until("steered", || can.quota() == AFTER && could.asked() > 0);
}

/// Periods that are set again and again put off no look.
#[test]
fn a_period_that_is_set_often_passes() {
    let policy = Sets::new(AFTER);
    let sidecar = Sidecar::new(Duration::from_millis(50));
    let _limiter = sidecar.register(in_memory(policy.clone())).unwrap();
    wait_until("asked", || {
        sidecar.set_period(Duration::from_millis(50));
        policy.asked() > 2
    });
}

/// Of two that would steer one file, one does; when its box is dropped, the other one.
#[test]
fn one_steers_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    SharedRateLimiter::create(&path, BEFORE).unwrap();
    let policies = [Sets::new(AFTER), Sets::new(AFTER)];
    let steer = |policy: &Sets| {
        let limiter = SharedRateLimiter::open(&path).unwrap().with_policy(policy.clone());
        // The lease is of three seconds: longer than this thread is ever held up, let us hope; else the test waits on.
        Sidecar::new(Duration::from_secs(1)).register(limiter).unwrap()
    };
    let [one, two] = &policies;
    let first = steer(one);
    wait_until("the first steers", || one.asked() > 0);
    let _second = steer(two);
    let before = one.asked();
    wait_until("the first goes on", || one.asked() > before + 1);
    assert_eq!(two.asked(), 0, "both steer");
    drop(first);
    wait_until("the second steers", || two.asked() > 0);
}

/// Whoever steers is killed; another process takes over.
#[test]
fn a_dead_holder_loses_the_lease() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    let limiter = SharedRateLimiter::create(&path, BEFORE).unwrap();
    let mut child = start("steers", &path);
    wait_until("the child steers", || limiter.quota() == AFTER);
    let policy = Sets::new(BEFORE);
    let sidecar = Sidecar::new(SHORT);
    let limiter = sidecar.register(limiter.with_policy(policy.clone())).unwrap();
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    wait_until("this one steers", || policy.asked() > 0 && limiter.quota() == BEFORE);
}
