//! Any bytes in a file.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt};

use tollgate::{AcquireError, Quota, SharedRateLimiter, TryAcquireError, quota};

use crate::LENGTH;

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
    assert_eq!(std::fs::metadata(&path).unwrap().size(), LENGTH);
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
