//! Everything that can happen to a file while it is used, with real processes, real signals and real mounts.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test")]

mod children;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use children::{is_root, release, skipped, start, through, wait_for_the_others, works};
use tempfile::TempDir;
use tollgate::{
    AcquireError, Clock, FileError, MachineClock, Options, Quota, SharedRateLimiter, TryAcquireError, quota,
    try_acquire_all,
};

/// A burst, and no second token while a test runs.
const SLOW: Quota = quota!(Quota::per_day(1), burst 1_000_000);
const PAGE: u64 = 4096;
const SIGBUS: i32 = 7;
const SIGKILL: i32 = 9;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("limit")
    }

    fn create(&self) -> SharedRateLimiter {
        SharedRateLimiter::create(self.path(), SLOW).unwrap()
    }

    fn writable(&self) -> File {
        OpenOptions::new().write(true).open(self.path()).unwrap()
    }

    fn entries(&self) -> usize {
        std::fs::read_dir(self.0.path()).unwrap().count()
    }
}

/// What a child does; a test that passes where this is no child.
#[test]
fn child() {
    let Some((role, path)) = children::role() else { return };
    let number: u64 = match role.as_str() {
        "truncated without a guard" => {
            let limiter = Options::new().guard(false).open(&path).unwrap();
            OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
            let _ = limiter.try_acquire(1);
            0
        }
        // A limiter is open and guarded, and something else is at fault.
        "another page" => {
            let _limiter = SharedRateLimiter::open(&path).unwrap();
            touch_a_truncated_page(&path.with_extension("other"));
            0
        }
        "another page, handled before" => {
            // SAFETY: sigaction(2) through signal-hook's register would chain; `signal` replaces, which is meant here,
            // by a handler that does nothing but end the process.
            unsafe { libc::signal(libc::SIGBUS, exits_with_42 as *const () as usize) };
            let _limiter = SharedRateLimiter::open(&path).unwrap();
            touch_a_truncated_page(&path.with_extension("other"));
            0
        }
        "takes" => {
            let limiter = SharedRateLimiter::open(&path).unwrap();
            wait_for_the_others();
            (0..).take_while(|_| limiter.try_acquire(1).is_ok()).count().try_into().unwrap()
        }
        "creates" => {
            SharedRateLimiter::create(&path, SLOW).unwrap();
            0
        }
        "creates on a full disk" => {
            let error = SharedRateLimiter::create(&path, SLOW).unwrap_err();
            let FileError::Io { doing: "creating", source, .. } = error else { panic!("{error}") };
            u64::from(source.kind() == std::io::ErrorKind::StorageFull)
        }
        "may only read" => {
            let limiter = SharedRateLimiter::open(&path).unwrap();
            assert!(limiter.is_read_only());
            assert!(matches!(limiter.set_quota(quota!(Quota::per_second(1))), Err(FileError::ReadOnly { .. })));
            assert_eq!(limiter.acquire(1), Err(AcquireError::ReadOnly));
            assert_eq!(limiter.try_acquire(1), Err(AcquireError::ReadOnly));
            assert_eq!(limiter.acquire_up_to(1), Err(AcquireError::ReadOnly));
            assert_eq!(limiter.refund(1), Err(AcquireError::ReadOnly));
            assert_eq!(limiter.settle(1, 2), Err(AcquireError::ReadOnly));
            assert_eq!(limiter.reset(), Err(AcquireError::ReadOnly));
            assert_eq!(limiter.resume(), Err(AcquireError::ReadOnly));
            assert_eq!(limiter.pause_for(Duration::from_secs(1)), Err(AcquireError::ReadOnly));
            assert_eq!(limiter.retry_after(1), Ok(Duration::ZERO));
            limiter.available().unwrap().into()
        }
        "may only read a pipe" => {
            let error = SharedRateLimiter::open(&path).unwrap_err();
            u64::from(matches!(error, FileError::NotAFile { found: "a named pipe", .. }))
        }
        // By a name that means another file, or none, from the folder that it goes to.
        "goes elsewhere" => {
            std::env::set_current_dir(path.parent().unwrap()).unwrap();
            let limiter = SharedRateLimiter::open(path.file_name().unwrap()).unwrap();
            std::env::set_current_dir("/").unwrap();
            assert_eq!(limiter.path(), path);
            limiter.set_quota(quota!(Quota::per_second(1))).unwrap();
            u64::from(limiter.check_identity().is_ok())
        }
        "forks" => forks(&path),
        // Sets one quota after the other until it is killed.
        "sets" => {
            let limiter = SharedRateLimiter::open(&path).unwrap();
            for capacity in (1_000_000..2_000_000).cycle() {
                limiter.set_quota(SLOW.with_burst(capacity).unwrap()).unwrap();
            }
            0
        }
        "hammers for a second" | "hammers by the fast clock" => {
            let limiter = Options::new().fast_clock(role.ends_with("fast clock")).open(&path).unwrap();
            wait_for_the_others();
            let end = MachineClock.now_micros() + 1_000_000;
            let mut granted = 0;
            while MachineClock.now_micros() < end {
                granted += u64::from(limiter.try_acquire(1).is_ok());
            }
            granted
        }
        "takes of two" => {
            let limits =
                [path.clone(), path.with_extension("other")].map(|path| SharedRateLimiter::open(path).unwrap());
            wait_for_the_others();
            (0..1000)
                .filter(|_| try_acquire_all(&[(&limits[0], 1), (&limits[1], 8)]).is_ok())
                .count()
                .try_into()
                .unwrap()
        }
        "waits for a damaged file" => {
            let limiter = SharedRateLimiter::open(&path).unwrap();
            println!("waiting");
            u64::from(limiter.acquire(1) == Err(AcquireError::Damaged))
        }
        role => panic!("no such role: {role}"),
    };
    println!("\n{role} {number}");
}

extern "C" fn exits_with_42(_: libc::c_int) {
    // SAFETY: _exit(2) has no precondition, and is allowed in a handler.
    unsafe { libc::_exit(42) }
}

fn touch_a_truncated_page(path: &Path) {
    std::fs::write(path, [1; 4096]).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let page = memmap2::MmapOptions::new().map_raw(&file).unwrap();
    file.set_len(0).unwrap();
    // SAFETY: the address is mapped; that the access is answered by SIGBUS is what is tested.
    std::hint::black_box(unsafe { page.as_ptr().read_volatile() });
}

/// Parent and child take from one bucket, by one limiter.
fn forks(path: &Path) -> u64 {
    let limiter = SharedRateLimiter::open(path).unwrap();
    limiter.try_acquire(1).unwrap();
    // SAFETY: the child makes calls on the limiter, which neither lock nor allocate, and ends by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let took = (0..1000).filter(|_| limiter.try_acquire(1).is_ok()).count();
        // SAFETY: _exit(2) has no precondition.
        unsafe { libc::_exit(i32::from(took != 1000)) };
    }
    let took = (0..1000).filter(|_| limiter.try_acquire(1).is_ok()).count();
    assert_eq!(took, 1000);
    let mut status = 0;
    // SAFETY: waitpid(2) asks for a valid pointer: `status` is a local variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child got its thousand");
    u64::from(SLOW.capacity() - limiter.available().unwrap())
}

fn run(role: &str, path: &Path) -> std::process::ExitStatus {
    start(role, path).wait_with_output().unwrap().status
}

/// What is done to the file while two threads hammer it.
fn damaged_by(damage: impl Fn(&Place)) {
    let place = Place::new();
    let limiter = place.create();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hammers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        match limiter.try_acquire(1) {
                            // On a slow machine they may have taken all.
                            Ok(_) | Err(AcquireError::Refused(_)) => {}
                            Err(error) => return error,
                        }
                    }
                    panic!("nobody noticed");
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(5));
        damage(&place);
        std::thread::sleep(Duration::from_millis(20));
        let after = limiter.try_acquire(1);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(after, Err(AcquireError::Damaged));
        for hammer in hammers {
            assert_eq!(hammer.join().unwrap(), AcquireError::Damaged);
        }
    });
    assert_eq!(limiter.available(), Err(AcquireError::Damaged));
    assert_eq!(limiter.refund(1), Err(AcquireError::Damaged));
    assert_eq!(limiter.acquire(1), Err(AcquireError::Damaged));
    assert_eq!(limiter.reset(), Err(AcquireError::Damaged));
    assert_eq!(limiter.pause_for(Duration::from_secs(1)), Err(AcquireError::Damaged));
    assert_eq!(limiter.resume(), Err(AcquireError::Damaged));
    assert!(limiter.set_quota(quota!(Quota::per_second(1))).is_err());
    assert!(limiter.reopen().is_err());
    // A new file under the name, and it goes on.
    std::fs::remove_file(place.path()).unwrap();
    assert_eq!(limiter.check_identity(), Err(AcquireError::Removed));
    place.create();
    assert_eq!(limiter.check_identity(), Err(AcquireError::Replaced));
    assert!(limiter.reopen().unwrap().try_acquire(1).is_ok());
}

#[test]
fn truncated_to_nothing() {
    damaged_by(|place| place.writable().set_len(0).unwrap());
}

#[test]
fn shrunk_within_the_page() {
    damaged_by(|place| place.writable().set_len(32).unwrap());
}

#[test]
fn truncated_and_grown_again() {
    damaged_by(|place| {
        place.writable().set_len(0).unwrap();
        place.writable().set_len(PAGE).unwrap();
    });
}

#[test]
fn a_hole_is_punched() {
    damaged_by(|place| {
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(place.writable(), flags, 0, PAGE).unwrap();
    });
}

#[test]
fn overwritten() {
    // By > and by cp, with less than a page and with more.
    for content in [&b"rate: 10"[..], &[0xaa; 10_000], &[0; 4096], &[0xff; 4096]] {
        damaged_by(|place| std::fs::write(place.path(), content).unwrap());
    }
}

/// The content of one limiter's file is put over another's: its users go by the new quota, or say that it is damaged,
/// and never mix the two.
#[test]
fn overwritten_by_another_limit() {
    let place = Place::new();
    let other = place.path().with_extension("other");
    let limiter = SharedRateLimiter::create(place.path(), quota!(Quota::per_day(1), burst 1000)).unwrap();
    let of_other = SharedRateLimiter::create(&other, quota!(Quota::per_day(2), burst 10)).unwrap();
    of_other.try_acquire(3).unwrap();
    // In place, as by dd: nobody finds it truncated.
    let content = std::fs::read(&other).unwrap();
    place.writable().write_all_at(&content, 0).unwrap();
    assert_eq!(
        limiter.try_acquire(8).unwrap_err().retry_after().map(|wait| wait < Duration::from_secs(43_300)),
        Some(true)
    );
    assert_eq!(limiter.available(), Ok(7));
    assert!(limiter.try_acquire(11).unwrap_err().retry_after().is_none());
    assert_eq!(limiter.quota(), of_other.quota());
    assert_eq!(limiter.try_acquire(7), Ok(0));
}

#[test]
fn damage_wakes_those_who_wait() {
    let place = Place::new();
    let limiter = place.create();
    limiter.try_acquire(SLOW.capacity()).unwrap();
    let waiting: Vec<_> = (0..4).map(|_| start("waits for a damaged file", &place.path())).collect();
    std::thread::sleep(Duration::from_millis(300));
    place.writable().set_len(0).unwrap();
    assert_eq!(release(waiting, "waits for a damaged file"), [1; 4]);
}

#[test]
fn without_a_guard_a_truncated_file_is_a_signal() {
    let place = Place::new();
    place.create();
    assert_eq!(run("truncated without a guard", &place.path()).signal(), Some(SIGBUS));
}

#[test]
fn another_sigbus_does_what_it_did() {
    let place = Place::new();
    place.create();
    assert_eq!(run("another page", &place.path()).signal(), Some(SIGBUS));
    assert_eq!(run("another page, handled before", &place.path()).code(), Some(42));
}

#[test]
fn a_relative_path_means_the_same_file_from_elsewhere() {
    let place = Place::new();
    place.create();
    assert_eq!(release(vec![start("goes elsewhere", &place.path())], "goes elsewhere"), [1]);
}

#[test]
fn many_limiters_are_guarded() {
    let places: Vec<_> = (0..150).map(|_| Place::new()).collect();
    let limiters: Vec<_> = places.iter().map(Place::create).collect();
    for place in &places {
        place.writable().set_len(0).unwrap();
    }
    assert!(limiters.iter().all(|limiter| limiter.try_acquire(1) == Err(AcquireError::Damaged)));
}

#[test]
fn removed_or_replaced_while_somebody_waits() {
    for replaced in [false, true] {
        let place = Place::new();
        let limiter = place.create();
        assert_eq!(limiter.check_identity(), Ok(()));
        limiter.try_acquire(SLOW.capacity()).unwrap();
        let outcome = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| limiter.acquire(1));
            std::thread::sleep(Duration::from_millis(50));
            std::fs::rename(place.path(), place.path().with_extension("old")).unwrap();
            if replaced {
                place.create();
            }
            waiter.join().unwrap()
        });
        let expected = if replaced { AcquireError::Replaced } else { AcquireError::Removed };
        assert_eq!(outcome, Err(expected));
        assert!(matches!(limiter.set_quota(quota!(Quota::per_second(1))), Err(FileError::Gone { .. })));
        assert_eq!(limiter.reopen().is_ok(), replaced);
        std::fs::create_dir_all(place.path()).ok();
        assert_eq!(limiter.check_identity(), Err(AcquireError::Replaced));
    }
}

#[test]
fn a_full_disk_is_an_error_when_the_file_is_made() {
    if !works("unshare", &["-m"]) {
        return skipped("mounting needs root");
    }
    let made = "truncate -s 300k $image && mkfs.ext4 -q -F -O ^has_journal $image";
    let mounts = [
        ("tmpfs", "mount -t tmpfs -o size=16k none $folder".to_owned()),
        ("ext4", format!("{made} && mount -o loop $image $folder")),
    ];
    for (kind, mount) in mounts {
        let place = Place::new();
        let image = place.path().with_extension("image");
        let folder = place.0.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let script = format!(
            "image={} folder={}; {mount} || exit 9; \
             for i in 1 2 3; do dd if=/dev/zero of=$folder/full$i bs=1k 2>/dev/null; sync; done; \
             \"$@\"; code=$?; ls -A $folder >&2; exit $code",
            image.display(),
            folder.display(),
        );
        let shell = ["-m", "sh", "-c", &script, "sh"];
        let mut command = through("unshare", &shell, "creates on a full disk", &folder.join("limit"));
        let output = command.output().unwrap();
        if kind == "ext4" && output.status.code() == Some(9) {
            return skipped("there is no mkfs.ext4, or no loop device");
        }
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("creates on a full disk 1"), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let left = String::from_utf8(output.stderr).unwrap();
        let litter = |name: &&str| *name != "lost+found" && !name.starts_with("full");
        assert_eq!(left.lines().find(litter), None, "no litter on {kind}");
    }
}

/// Killed at each of its system calls in turn, a creator leaves a whole file or none, and no litter.
#[test]
fn a_creator_is_killed_at_any_system_call() {
    if !works("strace", &["-o", "/dev/null"]) {
        return skipped("strace is not installed, or must not trace");
    }
    // strace counts the calls of each kind by themselves.
    let kinds = [
        "openat",
        "fallocate",
        "write",
        "fchmod",
        "fsync",
        "linkat",
        "fstat",
        "statx",
        "fstatfs",
        "mmap",
        "close",
        "read",
        "readlink",
        "rt_sigaction",
        "munmap",
        "exit_group",
    ];
    let (mut before, mut after) = (0, 0);
    for kind in kinds {
        for call in 1..100 {
            let place = Place::new();
            let inject = format!("inject={kind}:signal=KILL:when={call}");
            let mut command = through("strace", &["-f", "-o", "/dev/null", "-e", &inject], "creates", &place.path());
            let status = command.output().unwrap().status;
            match place.entries() {
                0 => before += 1,
                1 => after += 1,
                _ => panic!("litter after {kind} number {call}"),
            }
            let limiter = SharedRateLimiter::open_or_create(place.path(), SLOW).unwrap();
            assert_eq!(limiter.available(), Ok(SLOW.capacity()));
            if status.success() {
                break;
            }
        }
    }
    assert!(before > 20 && after > kinds.len(), "killed {before} times before the file was there, {after} times after");
}

#[test]
fn who_may_only_read_sees_and_takes_nothing() {
    if !is_root() {
        return skipped("becoming another user needs root");
    }
    let place = Place::new();
    std::fs::set_permissions(place.0.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let limiter = Options::new().mode(0o644).create(place.path(), SLOW).unwrap();
    limiter.try_acquire(7).unwrap();
    // The program may be in a folder of root's: a copy where everybody finds it.
    let program = place.0.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let nobody = |role: &str, path: &Path| {
        let mut command = Command::new(&program);
        command.args(["child", "--exact", "--nocapture"]).env("CHILD", role).env("CHILD_FILE", path);
        let output = command.uid(65534).gid(65534).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let text = nobody("may only read", &place.path());
    assert!(text.contains("may only read 999993"), "{text}");
    assert_eq!(limiter.available(), Ok(SLOW.capacity() - 7));
    // Opening a pipe for reading alone is what could block.
    let pipe = place.path().with_extension("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o644)).unwrap();
    let text = nobody("may only read a pipe", &pipe);
    assert!(text.contains("may only read a pipe 1"), "{text}");
}

#[test]
fn whose_file_it_is() {
    let place = Place::new();
    place.create();
    let mode = |mode| std::fs::set_permissions(place.path(), PermissionsExt::from_mode(mode)).unwrap();
    mode(0o662);
    let error = SharedRateLimiter::open(place.path()).unwrap_err();
    assert!(matches!(error, FileError::WorldWritable { mode: 0o662, .. }), "{error}");
    mode(0o660);
    assert!(SharedRateLimiter::open(place.path()).is_ok());
    if !is_root() {
        return skipped("giving a file away needs root");
    }
    std::os::unix::fs::chown(place.path(), Some(65534), None).unwrap();
    let error = SharedRateLimiter::open(place.path()).unwrap_err();
    assert!(matches!(error, FileError::OtherOwner { found: 65534, .. }), "{error}");
    assert!(Options::new().allow_owner(65534).open(place.path()).is_ok());
}

#[test]
fn files_of_the_kernel_and_of_nobody() {
    let place = Place::new();
    let sparse = File::create(place.path()).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let error = SharedRateLimiter::open(place.path()).unwrap_err();
    assert!(error.to_string().contains("it has 1099511627776 bytes"), "{error}");
    for path in ["/sys/kernel/mm/transparent_hugepage/enabled", "/proc/self/status", "/dev/zero", "/dev/full"] {
        if Path::new(path).exists() {
            let error = SharedRateLimiter::open(path).unwrap_err();
            assert!(matches!(error, FileError::NotALimiter { .. } | FileError::NotAFile { .. }), "{error}");
        }
    }
}

/// One process in a time namespace ten days ahead, one ten days behind, and one here share one file.
#[test]
fn time_namespaces_share_one_time() {
    if !works("unshare", &["-T", "--boottime", "1"]) {
        return skipped("a time namespace needs root");
    }
    let place = Place::new();
    let quota = quota!(Quota::per_second(1000), burst 100);
    SharedRateLimiter::create(place.path(), quota).unwrap();
    let begun = MachineClock.now_micros();
    let mut children = vec![start("hammers for a second", &place.path())];
    for offset in ["864000", "-1"] {
        let unshare = ["-T", "--boottime", offset, "--monotonic", offset];
        children.push(through("unshare", &unshare, "hammers for a second", &place.path()).spawn().unwrap());
    }
    let granted = release(children, "hammers for a second");
    let micros = MachineClock.now_micros() - begun;
    let bound = u64::from(quota.capacity()) + (micros + 1) / 1000;
    assert!(granted.iter().sum::<u64>() <= bound, "{granted:?} of {bound}");
    assert!(granted.iter().all(|granted| *granted > 0), "{granted:?}");
}

/// By either clock, which differ by up to 50 µs.
#[test]
fn two_clocks_share_one_file() {
    let place = Place::new();
    let quota = quota!(Quota::per_second(1_000_000), burst 10);
    SharedRateLimiter::create(place.path(), quota).unwrap();
    let begun = MachineClock.now_micros();
    let (one, two) = ("hammers for a second", "hammers by the fast clock");
    let others = [start(two, &place.path()), start(two, &place.path())];
    let mut granted = release(vec![start(one, &place.path())], one);
    granted.extend(release(others.into(), two));
    let bound = u64::from(quota.capacity()) + MachineClock.now_micros() - begun + 1 + 50;
    assert!(granted.iter().sum::<u64>() <= bound, "{granted:?} of {bound}");
    assert!(granted.iter().all(|granted| *granted > 0), "{granted:?}");
}

#[test]
fn a_forked_child_shares_the_limit() {
    let place = Place::new();
    place.create();
    let output = start("forks", &place.path()).wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("forks 2001"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// Setters of the quota are killed at any moment, while others take: no token is granted twice, and all go on.
#[test]
fn setters_are_killed_at_any_moment() {
    let place = Place::new();
    let limiter = place.create();
    let takers: Vec<_> = (0..2).map(|_| start("takes", &place.path())).collect();
    let kills = 40;
    let takers = std::thread::spawn(move || release(takers, "takes"));
    for kill in 0..kills {
        let mut setter = start("sets", &place.path());
        std::thread::sleep(Duration::from_millis(5 + kill % 7));
        setter.kill().unwrap();
        assert_eq!(setter.wait().unwrap().signal(), Some(SIGKILL));
        assert!(limiter.available().is_ok());
    }
    limiter.set_quota(quota!(Quota::per_day(1), burst 2_000_000)).unwrap();
    let left = limiter.available().unwrap();
    let granted: u64 = takers.join().unwrap().iter().sum();
    assert_eq!(granted + u64::from(left), SLOW.capacity().into());
}

/// While the quota goes back and forth, four processes get no more than the larger one allows.
#[test]
fn the_quota_changes_while_others_take() {
    let place = Place::new();
    let quotas = [quota!(Quota::per_second(5000), burst 500), quota!(Quota::per_second(20_000), burst 100)];
    let limiter = SharedRateLimiter::create(place.path(), quotas[0]).unwrap();
    let begun = MachineClock.now_micros();
    let hammers = (0..3).map(|_| start("hammers for a second", &place.path())).collect();
    let hammers = std::thread::spawn(move || release(hammers, "hammers for a second"));
    let mut changes = 0;
    while !hammers.is_finished() {
        limiter.set_quota(quotas[changes % 2]).unwrap();
        changes += 1;
        std::thread::sleep(Duration::from_millis(3));
    }
    let granted: u64 = hammers.join().unwrap().iter().sum();
    let micros = MachineClock.now_micros() - begun;
    assert!(granted <= 500 + micros / 50 + 1, "{granted} in {micros} µs, {changes} changes");
    assert!(granted > 0 && changes > 20);
}

#[test]
fn a_stopped_setter_holds_up_setters_alone() {
    let place = Place::new();
    let limiter = place.create();
    // The lock that a stopped setter would hold.
    let setter = place.writable();
    setter.lock().unwrap();
    assert!(limiter.try_acquire(1).is_ok());
    assert!(SharedRateLimiter::open(place.path()).unwrap().try_acquire(1).is_ok());
    let refused = limiter.set_quota(quota!(Quota::per_second(1))).unwrap_err();
    assert!(matches!(refused, FileError::Busy { .. }), "{refused}");
    drop(setter);
    limiter.set_quota(quota!(Quota::per_second(1))).unwrap();
}

#[test]
fn a_pause_is_everybodys() {
    let place = Place::new();
    let limiter = SharedRateLimiter::create(place.path(), quota!(Quota::per_second(1000))).unwrap();
    let other = SharedRateLimiter::open(place.path()).unwrap();
    limiter.pause_for(Duration::from_millis(200)).unwrap();
    let begun = MachineClock.now_micros();
    let Err(AcquireError::Paused { retry_after, .. }) = other.try_acquire(1) else { panic!("granted") };
    assert!(retry_after <= Duration::from_millis(200));
    assert!(other.acquire_timeout(1, Duration::ZERO).is_err());
    assert!(other.retry_after(1).unwrap() > Duration::ZERO);
    assert!(other.acquire(1).is_ok());
    assert!(MachineClock.now_micros() - begun >= 190_000, "it waited for the end of the pause");

    limiter.pause_for(Duration::MAX).unwrap();
    limiter.pause_for(Duration::ZERO).unwrap();
    assert!(other.paused() > Duration::from_secs(1 << 40));
    other.set_quota(quota!(Quota::per_second(2000))).unwrap();
    assert!(limiter.try_acquire(1).is_err(), "another quota does not end it");
    assert_eq!(limiter.refund(1), Ok(()));
    other.resume().unwrap();
    assert_eq!(other.paused(), Duration::ZERO);
    assert!(limiter.try_acquire(1).is_ok());
    #[allow(clippy::disallowed_methods, reason = "the argument is the system clock's")]
    let now = std::time::SystemTime::now();
    limiter.pause_until(now - Duration::from_secs(10)).unwrap();
    assert!(limiter.try_acquire(1).is_ok());
    limiter.pause_until(now + Duration::from_secs(1000)).unwrap();
    assert!(limiter.paused() > Duration::from_secs(500));
}

#[test]
fn several_limits_hold_over_several_processes() {
    let place = Place::new();
    let other = place.path().with_extension("other");
    let one = SharedRateLimiter::create(place.path(), quota!(Quota::per_day(1), burst 500)).unwrap();
    let two = SharedRateLimiter::create(&other, quota!(Quota::per_day(1), burst 1000)).unwrap();
    let granted = release((0..8).map(|_| start("takes of two", &place.path())).collect(), "takes of two");
    let granted = u32::try_from(granted.iter().sum::<u64>()).unwrap();
    // The second is the scarce one; near its end, one may find taken what another is about to give back.
    assert!((100..=125).contains(&granted), "{granted}");
    assert_eq!((one.available(), two.available()), (Ok(500 - granted), Ok(1000 - 8 * granted)));

    // A file that is named twice is asked for the sum.
    let left = two.available().unwrap();
    let again = SharedRateLimiter::open(&other).unwrap();
    two.refund(10).unwrap();
    let refused = try_acquire_all(&[(&two, 500), (&one, 1), (&again, 501)]).unwrap_err();
    assert_eq!((refused.index, refused.retry_after), (0, None), "more than its burst");
    let refused = try_acquire_all(&[(&one, 1), (&two, left + 5), (&again, 6)]).unwrap_err();
    assert_eq!(refused.index, 1);
    assert!(refused.retry_after.unwrap() > Duration::from_secs(80_000));
    assert_eq!(one.available(), Ok(500 - granted));
    try_acquire_all(&[(&one, 1), (&two, left + 5), (&again, 5)]).unwrap();
    assert_eq!((one.available(), two.available()), (Ok(499 - granted), Ok(0)));
    assert!(try_acquire_all(&[]).is_ok());

    // Both refuse: the first is named, and the longer wait is told.
    let soon = SharedRateLimiter::create(place.path().with_extension("soon"), quota!(Quota::per_second(1))).unwrap();
    soon.try_acquire(1).unwrap();
    let refused = try_acquire_all(&[(&soon, 1), (&two, 1)]).unwrap_err();
    assert_eq!(refused.index, 0);
    assert!(refused.error.retry_after().unwrap() <= Duration::from_secs(1));
    assert!(refused.retry_after.unwrap() > Duration::from_secs(80_000));
}

/// Two hundred thousand files, each whole but for some bytes, half of them with a right checksum of the quota: no
/// panic, no signal, and never more than the capacity at once.
#[test]
fn any_bytes() {
    let folder = tempfile::Builder::new().tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("limit");
    let quota = quota!(Quota::per_second(100), burst 50);
    drop(SharedRateLimiter::create(&path, quota).unwrap());
    let whole = std::fs::read(&path).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let rounds: u64 = std::env::var("TOLLGATE_MUTATIONS").map_or(20_000, |rounds| rounds.parse().unwrap());
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        // Marsaglia's xorshift, for files alone.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    // Where something is: the header, the shared line, and the first slot.
    let places: Vec<usize> = (0..24).chain(64..88).chain(2048..2104).collect();
    let mut opened = 0;
    for round in 0..rounds {
        let mut page = whole.clone();
        for _ in 0..1 + next() % 4 {
            let place = places[usize::try_from(next()).unwrap() % places.len()];
            page[place] = match next() % 3 {
                0 => u8::try_from(next() % 256).unwrap(),
                1 => page[place] ^ (1 << (next() % 8)),
                _ => [0, 0xff, 0x7f, 0x80][usize::try_from(next() % 4).unwrap()],
            };
        }
        if round % 2 == 0 {
            let quota = crc32(&page[2048 + 24..2048 + 48]);
            page[2048 + 48..2048 + 56].copy_from_slice(&(u64::from(quota) | 1 << 32).to_ne_bytes());
            let header = crc32(&page[..20]);
            page[20..24].copy_from_slice(&header.to_ne_bytes());
        }
        file.write_all_at(&page, 0).unwrap();
        let Ok(limiter) = SharedRateLimiter::open(&path) else { continue };
        opened += 1;
        let capacity = limiter.quota().capacity();
        let before = limiter.now_micros();
        let granted = match limiter.acquire_up_to(u32::MAX) {
            Ok(granted) => granted,
            Err(AcquireError::Paused { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        assert!(granted <= capacity);
        let _ = limiter.retry_after(capacity);
        let again = limiter.acquire_up_to(u32::MAX).unwrap_or(0);
        let accrued = accrued(&limiter.quota(), limiter.now_micros() - before);
        assert!(u128::from(granted) + u128::from(again) <= u128::from(capacity) + accrued, "{granted} and {again}");
        assert!(matches!(
            limiter.settle(0, capacity).and(limiter.refund(3)).and(limiter.resume()).and(limiter.reset()),
            Ok(()) | Err(AcquireError::Refused(TryAcquireError::Insufficient { .. }))
        ));
    }
    assert!(opened > rounds / 20 && opened < rounds, "{opened} of {rounds} could be opened");
    assert_eq!(std::fs::metadata(&path).unwrap().size(), PAGE);
}

fn accrued(quota: &Quota, micros: u64) -> u128 {
    u128::from(micros + 1) * 1000 * u128::from(quota.tokens()) / quota.period().as_nanos() + 1
}

/// The checksum of the format, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1));
        }
    }
    !crc
}
