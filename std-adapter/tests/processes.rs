//! Real processes on one file: they create it at once, take from it at once, and are killed at any moment.
//!
//! A test starts this program again, with the test [`child`] alone; what a child prints comes back to the test.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod children;

use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::time::Duration;

use children::{release, start, through, wait_for_the_others};
use tollgate::{
    AcquireError, Clock, Count, FastClock, FileError, MachineClock, Options, Quota, SharedRateLimiter, TryAcquireError,
    quota,
};

/// A burst, and no second token while a test runs.
const BURST: u32 = 10_000;
const SLOW: Quota = quota!(Quota::per_day(1), burst BURST);

/// What a child does, told by the variable CHILD; a test that passes when it is not set.
#[test]
fn child() {
    let Some((role, path)) = children::role() else { return };
    let number = match role.as_str() {
        "creates" => {
            wait_for_the_others();
            let limiter = SharedRateLimiter::open_or_create(path, SLOW).unwrap();
            (0..).take_while(|_| limiter.try_acquire(1).is_ok()).count()
        }
        "takes" => {
            let limiter = SharedRateLimiter::open(path).unwrap();
            wait_for_the_others();
            (0..).take_while(|_| limiter.try_acquire(1).is_ok()).count()
        }
        "counts" => {
            let limiter = SharedRateLimiter::open(path).unwrap();
            wait_for_the_others();
            let end = MachineClock.now_micros() + 1_000_000;
            let mut granted = 0;
            while MachineClock.now_micros() < end {
                granted += usize::from(limiter.try_acquire(1).is_ok());
            }
            granted
        }
        "counts by four threads" => {
            let limiter = SharedRateLimiter::open(path).unwrap();
            wait_for_the_others();
            let end = MachineClock.now_micros() + 1_000_000;
            let calls = || {
                let mut granted = 0;
                while MachineClock.now_micros() < end {
                    granted += usize::from(limiter.try_acquire(1).is_ok());
                }
                granted
            };
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(calls)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            })
        }
        "seats" => {
            let limiter = SharedRateLimiter::open(path).unwrap();
            limiter.try_acquire(1).unwrap();
            limiter.attached().len()
        }
        "waits" => {
            let limiter = SharedRateLimiter::open(path).unwrap();
            wait_for_the_others();
            for _ in 0..25 {
                limiter.acquire(1).unwrap();
            }
            25
        }
        // Says each token that it has got, until it is killed.
        "hammers" | "hammers by the fast clock" => {
            let limiter = Options::new().fast_clock(role != "hammers").open(path).unwrap();
            let mut out = std::io::stdout();
            loop {
                if limiter.try_acquire(1).is_ok() {
                    out.write_all(b"token\n").unwrap();
                }
            }
        }
        role => panic!("no such role: {role}"),
    };
    println!("\n{role} {number}");
}

#[test]
fn eight_create_one_file_at_once() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limit");
        let children = (0..8).map(|_| start("creates", &path)).collect();
        let granted = release(children, "creates");
        assert_eq!(granted.iter().sum::<u64>(), BURST.into(), "{granted:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "one file and no other");
    }
}

#[test]
fn four_take_from_one_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    let limiter = SharedRateLimiter::create(&path, SLOW).unwrap();
    let children = (0..4).map(|_| start("takes", &path)).collect();
    assert_eq!(release(children, "takes").iter().sum::<u64>(), BURST.into());
    assert_eq!(limiter.available(), Ok(0));
    limiter.refund(1).unwrap();
    assert_eq!(limiter.try_acquire(1), Ok(0));
}

/// What the processes have counted for themselves is what they have counted in the file.
#[test]
fn eight_count_what_they_are_granted() {
    for role in ["counts", "counts by four threads"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limit");
        // More than can be taken in a second.
        let plenty = quota!(Quota::per_second(4_000_000_000));
        let limiter = SharedRateLimiter::create(&path, plenty).unwrap();
        let children: Vec<_> = (0..8).map(|_| start(role, &path)).collect();
        let granted: u64 = release(children, role).iter().sum();
        let counts = limiter.counts();
        assert_eq!(counts.get(Count::GrantedCalls), granted, "{role}");
        assert_eq!(counts.get(Count::GrantedTokens), granted, "{role}");
        assert!(granted > 8 * 1000, "{granted} calls: they were not under load");
        assert_eq!(limiter.attached().len(), 1, "all others have left");
    }
}

/// Half of them are killed, each at another moment: what they have said, and not counted, or the other way round, is one call
/// for each kill.
#[test]
fn what_the_killed_have_counted_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    let plenty = quota!(Quota::per_second(4_000_000_000));
    let limiter = SharedRateLimiter::create(&path, plenty).unwrap();
    let (mut said, mut kills) = (0_u64, 0_u64);
    for round in 0..10 {
        let survivors: Vec<_> = (0..4).map(|_| start("counts", &path)).collect();
        let victims: Vec<_> = (0..4).map(|_| start("hammers", &path)).collect();
        for (number, mut victim) in (0..).zip(victims) {
            let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
            let mut seen = lines.by_ref().filter(|line| line == "token").take(1 + 17 * number).count();
            std::thread::sleep(Duration::from_micros(777 * (round + 1)));
            victim.kill().unwrap();
            victim.wait().unwrap();
            seen += lines.filter(|line| line == "token").count();
            said += seen as u64;
            kills += 1;
        }
        said += release(survivors, "counts").iter().sum::<u64>();
    }
    let counted = limiter.counts().get(Count::GrantedCalls);
    assert!(counted.abs_diff(said) <= kills, "{counted} counted, {said} said, {kills} kills");
    let seats: u32 = limiter.attached().iter().map(|process| process.seats).sum();
    assert_eq!(seats, 1, "the seats of the dead are free");
}

/// A call by a time that was read before somebody looked for events is seen all the same.
#[test]
fn events_of_a_time_before() {
    let limiter = SharedRateLimiter::in_memory(SLOW).unwrap();
    let mut events = limiter.events().unwrap();
    for _ in 0..100 {
        let now = limiter.now_micros();
        while limiter.now_micros() == now {}
        assert_eq!(events.read(), None);
        limiter.try_acquire_at(now, 1).unwrap();
        assert!(matches!(events.read(), Some(tollgate::Event::Granted { tokens: 1, .. })));
    }
}

/// In a namespace of process ids, a process has another id than in a /proc from outside: it would be taken for another one there. It has
/// no seat, and what it is granted counts all the same.
#[test]
fn who_can_not_be_told_has_no_seat() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    let limiter = SharedRateLimiter::create(&path, SLOW).unwrap();
    let seats = |child: &mut Command| release(vec![child.spawn().unwrap()], "seats");
    assert_eq!(seats(&mut children::command("seats", &path)), [2], "this process and that one");
    let namespaces: [(&[_], _); 2] = [(&["--pid", "--fork"], 1), (&["--pid", "--fork", "--mount-proc"], 2)];
    for (arguments, expected) in namespaces {
        if !children::works("unshare", arguments) {
            children::skipped("no namespace of process ids can be made");
            return;
        }
        let before = limiter.counts().get(Count::GrantedCalls);
        assert_eq!(seats(&mut through("unshare", arguments, "seats", &path)), [expected], "{arguments:?}");
        assert_eq!(limiter.counts().get(Count::GrantedCalls), before + 1);
    }
}

#[test]
fn four_wait_for_their_turns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    SharedRateLimiter::create(&path, quota!(Quota::per_second(200), burst 1)).unwrap();
    let children = (0..4).map(|_| start("waits", &path)).collect();
    let begun = MachineClock.now_micros();
    assert_eq!(release(children, "waits").iter().sum::<u64>(), 100);
    // The bucket may have been full, and refills no faster than its rate.
    assert!(MachineClock.now_micros() - begun >= 99 * 5000 - 5000);
}

/// A killed process leaves a bucket that all others can use, and has wasted at most the token that it was about to
/// report.
#[test]
fn killed_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    // Nothing accrues for an hour: what is there is what was not taken.
    let quota = quota!(Quota::per_hour(1), burst 1_000_000_000);
    let limiter = SharedRateLimiter::create(&path, quota).unwrap();
    let kills = std::env::var("TOLLGATE_KILLS").map_or(2000, |kills| kills.parse().unwrap());
    let mut reported = 0_u32;
    for kill in 0..kills {
        let mut child = start("hammers", &path);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        // Killed at another moment each time: after so many tokens, and some microseconds.
        let enough = 1 + kill * 7 % 50;
        let mut seen = lines.by_ref().filter(|line| line == "token").take(enough as usize).count();
        std::thread::sleep(Duration::from_micros(u64::from(kill) * 13 % 300));
        child.kill().unwrap();
        child.wait().unwrap();
        seen += lines.filter(|line| line == "token").count();
        reported += u32::try_from(seen).unwrap();
        let taken = quota.capacity() - limiter.available().unwrap();
        assert!(reported <= taken, "{reported} reported, {taken} taken");
        assert!(taken - reported <= kill + 1, "{} wasted by {} kills", taken - reported, kill + 1);
    }
    let left = limiter.available().unwrap();
    assert_eq!(limiter.try_acquire(left), Ok(0));
}

/// Three processes, of which two read the fast clock, and one after the other is killed: together they get no more
/// than the burst and what accrues, and what the clocks are off by.
#[test]
fn killed_by_whichever_clock() {
    const PER_SECOND: u64 = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    let limiter = SharedRateLimiter::create(&path, quota!(Quota::per_second(100_000), burst 50)).unwrap();
    let begun = limiter.now_micros();
    // Starts one after the other, and returns what they said until they were killed.
    let killed = |role: &'static str| {
        let path = path.clone();
        move || {
            let mut reported = 0;
            for kill in 0..12 {
                let mut child = start(role, &path);
                let out = BufReader::new(child.stdout.take().unwrap());
                let lines = out.lines().map_while(Result::ok).filter(|line| line == "token");
                let reader = std::thread::spawn(move || lines.count() as u64);
                // Long enough for the fast clock to be one.
                std::thread::sleep(Duration::from_millis(100 + kill * 17 % 60));
                child.kill().unwrap();
                child.wait().unwrap();
                reported += reader.join().unwrap();
            }
            reported
        }
    };
    let roles = ["hammers by the fast clock", "hammers", "hammers by the fast clock"];
    let threads = roles.map(|role| std::thread::spawn(killed(role)));
    let reported: u64 = threads.map(|thread| thread.join().unwrap()).iter().sum();
    let elapsed = limiter.now_micros() - begun;
    // The first reading may be early, the last one late.
    let error = 2 * u64::try_from(FastClock::MAX_ERROR.as_micros()).unwrap();
    let most = 50 + PER_SECOND * (elapsed + error) / 1_000_000 + 1;
    assert!(reported <= most, "{reported} tokens in {elapsed} µs, at most {most}");
    assert!(reported >= most / 20, "{reported} tokens of {most}: it was not under load");
}

#[test]
fn opening_what_is_not_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("short"), b"TOLLGATE").unwrap();
    std::fs::write(path("zeros"), [0; 4096]).unwrap();
    SharedRateLimiter::create(path("limit"), SLOW).unwrap();
    let whole = std::fs::read(path("limit")).unwrap();
    std::fs::write(path("long"), [whole.as_slice(), &[0]].concat()).unwrap();
    std::fs::write(path("first page"), whole.get(..4096).unwrap()).unwrap();
    std::os::unix::fs::symlink(path("limit"), path("link")).unwrap();
    std::os::unix::fs::symlink(path("nothing"), path("dangling")).unwrap();
    let pipe = Command::new("mkfifo").arg(path("pipe")).status().unwrap();
    assert!(pipe.success());

    let cases = [
        (path("none"), "there is no such file"),
        (path("short"), "it has 8 bytes, not 32768"),
        (path("long"), "it has 32769 bytes, not 32768"),
        (path("first page"), "it has 4096 bytes, not 32768"),
        (path("zeros"), "it starts with \"\\x00\\x00"),
        (path("link"), "found a symbolic link"),
        (path("dangling"), "found a symbolic link"),
        (path("pipe"), "found a named pipe"),
        (path(""), "found a directory"),
        ("/dev/null".into(), "found a device"),
    ];
    for (path, reason) in cases {
        let error = SharedRateLimiter::open(&path).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(reason) && text.starts_with(path.to_str().unwrap()), "{path:?}: {text}");
        if !matches!(error, FileError::NotFound { .. }) {
            let error = SharedRateLimiter::open_or_create(&path, SLOW).unwrap_err();
            assert_eq!(error.to_string(), text, "open_or_create replaces nothing");
        }
    }
    assert!(!path("nothing").exists(), "nothing was created through the link");
}

#[test]
fn what_can_never_be_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    let limiter = SharedRateLimiter::open_or_create(&path, SLOW).unwrap();
    assert!(matches!(limiter.acquire(BURST + 1), Err(AcquireError::Refused(TryAcquireError::ExceedsCapacity { .. }))));
    assert_eq!(limiter.acquire(BURST), Ok(0));
    // A day away, and a minute allowed.
    let refused = limiter.acquire_timeout(1, Duration::from_secs(60)).unwrap_err();
    assert!(refused.retry_after().unwrap() > Duration::from_secs(86_000));

    let other = SharedRateLimiter::open_or_create(&path, Quota::per_second(1).unwrap()).unwrap_err();
    assert!(matches!(other, FileError::QuotaMismatch { .. }), "{other}");
    assert!(matches!(SharedRateLimiter::create(&path, SLOW), Err(FileError::AlreadyExists { .. })));
}

/// A file that is overwritten with zeros while it is open is noticed by the next call; it is not a bucket any more.
#[test]
fn an_erased_file_grants_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit");
    let limiter = SharedRateLimiter::create(&path, SLOW).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 4096], 0).unwrap();
    assert_eq!(limiter.try_acquire(1), Err(AcquireError::Damaged));
    assert_eq!(limiter.acquire(1), Err(AcquireError::Damaged));
    assert_eq!(limiter.refund(1), Err(AcquireError::Damaged));
    assert_eq!(limiter.available(), Err(AcquireError::Damaged));
}
