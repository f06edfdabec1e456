//! A file that is damaged, removed or replaced while it is open.

use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tollgate::{AcquireError, FileError, Quota, SharedRateLimiter, quota};

use crate::children::{release, start};
use crate::{LENGTH, Place, SLOW};

const SIGBUS: i32 = 7;

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
        place.writable().set_len(LENGTH).unwrap();
    });
}

#[test]
fn a_hole_is_punched() {
    damaged_by(|place| {
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(place.writable(), flags, 0, LENGTH).unwrap();
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
