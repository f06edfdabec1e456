//! What the children do.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use tollgate::{
    AcquireError, Clock, FileError, MachineClock, Options, Quota, SharedRateLimiter, quota, try_acquire_all,
};

use crate::SLOW;
use crate::children::{self, wait_for_the_others};

/// Does what this process is told to, if it is a child.
pub(crate) fn play() {
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
