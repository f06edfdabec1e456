//! Processes that share a limit: in other time namespaces, by other clocks, forked.

use tollgate::{Clock, MachineClock, Quota, SharedRateLimiter, quota};

use crate::Place;
use crate::children::{release, skipped, start, through, works};

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
