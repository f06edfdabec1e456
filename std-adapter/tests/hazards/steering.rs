//! Quotas, pauses and several limits, while others take.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use tollgate::{AcquireError, Clock, FileError, MachineClock, Quota, SharedRateLimiter, quota, try_acquire_all};

use crate::children::{release, start};
use crate::{Place, SLOW};

const SIGKILL: i32 = 9;

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
    assert!(limiter.try_acquire(0).is_ok(), "no tokens are never refused");
    assert_eq!(limiter.retry_after(0), Ok(Duration::ZERO));
    assert_eq!(limiter.try_acquire(2001).unwrap_err().retry_after(), None, "a pause does not hide that it is never");
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
fn a_pause_does_not_hide_a_longer_wait() {
    let place = Place::new();
    let limiter = place.create();
    limiter.try_acquire(SLOW.capacity()).unwrap();
    limiter.pause_for(Duration::from_secs(1000)).unwrap();
    let refused = limiter.try_acquire(1).unwrap_err();
    assert!(refused.retry_after().unwrap() > Duration::from_secs(80_000), "{refused}");
}

#[test]
fn a_sum_that_no_limit_holds_is_refused_for_ever() {
    let place = Place::new();
    let limiter =
        SharedRateLimiter::create(place.path(), quota!(Quota::per_second(1_000_000), burst u32::MAX)).unwrap();
    let refused = try_acquire_all(&[(&limiter, u32::MAX), (&limiter, u32::MAX)]).unwrap_err();
    assert_eq!((refused.index, refused.retry_after), (0, None));
    assert_eq!(limiter.available(), Ok(u32::MAX));
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
