//! A quota in atomic cells.

use core::sync::atomic::Ordering::Relaxed;

use crate::tick::{Reciprocal, Scale, Ticks};
use crate::{DefaultWord, Quota};

/// A [`Quota`] that can be replaced behind a shared reference: five words, each of them atomic.
///
/// The five together are not: whoever stores must see to it that nobody loads meanwhile, or stores the same quota.
/// Fill a cell first and say where it is afterwards, with a Release that pairs with the readers' Acquire.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Quota, QuotaCell, quota};
///
/// static LIMIT: QuotaCell = QuotaCell::new(quota!(Quota::per_second(10)));
/// LIMIT.store(&quota!(Quota::per_minute(5), burst 2));
/// assert_eq!(LIMIT.load(), quota!(Quota::per_minute(5), burst 2));
/// ```
#[derive(Debug)]
pub struct QuotaCell([DefaultWord; 5]);

impl QuotaCell {
    /// Makes a cell that holds `quota`.
    #[inline]
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        let [a, b, c, d, e] = pack(&quota);
        Self([DefaultWord::new(a), DefaultWord::new(b), DefaultWord::new(c), DefaultWord::new(d), DefaultWord::new(e)])
    }

    /// Returns the quota. Relaxed.
    #[inline]
    #[must_use]
    pub fn load(&self) -> Quota {
        let [amounts, period_nanos, shifts, high, low] = &self.0;
        let (amounts, shifts) = (amounts.load(Relaxed), shifts.load(Relaxed));
        let scale = Scale {
            period_nanos: period_nanos.load(Relaxed),
            tokens: lower(amounts),
            up: byte(shifts),
            down: byte(shifts >> 8),
            coarse: shifts >> 16 != 0,
        };
        let ratio = Reciprocal { high: high.load(Relaxed), low: low.load(Relaxed) };
        Quota { capacity: lower(amounts >> 32), ticks: Ticks { scale, ratio } }
    }

    /// Replaces the quota. Relaxed.
    #[inline]
    pub fn store(&self, quota: &Quota) {
        for (cell, word) in self.0.iter().zip(pack(quota)) {
            cell.store(word, Relaxed);
        }
    }
}

const fn pack(quota: &Quota) -> [u64; 5] {
    let Ticks { scale, ratio } = quota.ticks;
    let amounts = ((quota.capacity as u64) << 32) | scale.tokens as u64;
    let shifts = scale.up as u64 | (scale.down as u64) << 8 | (scale.coarse as u64) << 16;
    [amounts, scale.period_nanos, shifts, ratio.high, ratio.low]
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn lower(value: u64) -> u32 {
    value as u32
}

#[allow(clippy::cast_possible_truncation, reason = "the lowest byte is what is asked for")]
const fn byte(value: u64) -> u8 {
    value as u8
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn every_field_comes_back() {
        let quotas = [
            Quota::new(u32::MAX, Duration::from_nanos(1000)),
            Quota::new(3, Duration::from_secs(3_155_760_000)).and_then(|quota| quota.with_burst(7)),
            Quota::per_hour(5000).and_then(|quota| quota.with_burst(u32::MAX)),
        ];
        let cell = QuotaCell::new(Quota::per_second(1).unwrap());
        for quota in quotas.map(Result::unwrap) {
            cell.store(&quota);
            let loaded = cell.load();
            let ratio = |quota: &Quota| (quota.ticks.ratio.high, quota.ticks.ratio.low);
            assert_eq!(
                (loaded.capacity, loaded.scale(), ratio(&loaded)),
                (quota.capacity, quota.scale(), ratio(&quota))
            );
            assert_eq!(pack(&QuotaCell::new(quota).load()), pack(&quota));
        }
    }
}
