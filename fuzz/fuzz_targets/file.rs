//! Any bytes as a limiter's file: no panic, no signal, never more than the capacity at once.
//!
//! The input replaces bytes of a whole file, since one of random bytes is refused at its first eight: pairs of a place, two
//! bytes, and a byte. An odd first byte corrects the checksum of the quota.

#![no_main]

use std::io::Write;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tollgate::{AcquireError, Quota, SharedRateLimiter, quota};

const QUOTA: Quota = quota!(Quota::per_second(100), burst 50);

fuzz_target!(|input: &[u8]| {
    static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("limit");
    let whole = WHOLE.get_or_init(|| {
        drop(SharedRateLimiter::create(&path, QUOTA).expect("a limiter"));
        let whole = std::fs::read(&path).expect("its file");
        std::fs::remove_file(&path).expect("removing it");
        whole
    });
    let Some((first, edits)) = input.split_first() else { return };
    let mut page = whole.clone();
    for edit in edits.chunks_exact(3) {
        page[usize::from(u16::from_le_bytes([edit[0], edit[1]])) % 4096] = edit[2];
    }
    if first % 2 == 1 {
        let sum = u64::from(crc32(&page[2072..2096])) | 1 << 32;
        page[2096..2104].copy_from_slice(&sum.to_ne_bytes());
    }
    let mut file = std::fs::File::create(&path).expect("a file");
    file.write_all(&page).expect("its bytes");
    let Ok(limiter) = SharedRateLimiter::open(&path) else { return };
    let capacity = limiter.quota().capacity();
    match limiter.acquire_up_to(u32::MAX) {
        Ok(granted) => assert!(granted <= capacity),
        Err(AcquireError::Paused { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let _ = limiter.retry_after(capacity);
    let _ = limiter.settle(0, capacity);
    let _ = limiter.set_quota(QUOTA);
    let _ = limiter.reset();
    assert!(limiter.available().is_ok_and(|available| available <= limiter.quota().capacity()));
});

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
