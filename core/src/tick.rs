//! The unit of time inside a bucket: a power-of-two fraction of a token.
//!
//! Whole microseconds leave no room for the fraction of a token that has accrued, so a bucket counts *ticks*:
//!
//! ```text
//! one token = 2^up ticks            (slow and usual rates: down = 0)
//! one tick  = 2^down tokens         (rates of 1024 tokens a microsecond and more: up = 0)
//! ```
//!
//! A refill is then a shift, and what is left of a token stays in the time stamp to the last tick. Both scales are
//! chosen so that filling the bucket takes at most 2^29 ticks where that can be, and a tick at least 1/1024 µs.
//!
//! Time becomes ticks without a division, exactly: the ratio a/b of ticks to microseconds is kept as the
//! reciprocal ceil(2^128 · a / (1024·b)), and `floor(time · a / b)` is the upper part of one product with it.
//! (Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994.) The product errs by
//! less than 1024 · 2^53 / 2^128 = 2^-65 upwards; the exact quotient is a multiple of 1/b, and b < 2^62: so no
//! integer lies between the two.

use core::hint::cold_path;

use crate::MAX_MICROS;
use crate::state::IDLE;

/// The ticks in which the time of a full refill should fit.
pub(crate) const FILL_TICKS: u64 = 1 << 29;

/// log2 of the most ticks in a microsecond, exclusive.
const MAX_TICKS_LOG2: u32 = 10;

/// Nanoseconds in a microsecond.
const NANOS: u64 = 1000;

/// Tokens for a period, and the ticks it is counted in: all that turns tokens into ticks, and ticks into time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) struct Scale {
    /// Nanoseconds of the period: 10^3 ..< 2^62.
    pub(crate) period_nanos: u64,
    /// Tokens that accrue in a period: 1 ..= 2^32 − 1.
    pub(crate) tokens: u32,
    /// log2 of the ticks in a token, 0 ..= 29.
    pub(crate) up: u8,
    /// log2 of the tokens in a tick, 0 ..= 22: above 0 only where more than a thousand accrue in a microsecond.
    pub(crate) down: u8,
    /// Whether a tick is longer than a microsecond.
    pub(crate) coarse: bool,
}

impl Scale {
    /// Chooses the finest ticks for a bucket of `capacity` tokens that has a horizon. The arguments are in the ranges
    /// of the fields.
    pub(crate) const fn new(capacity: u32, tokens: u32, period_nanos: u64) -> Self {
        Self::finest(tokens, period_nanos, capacity, 0)
    }

    /// Chooses the finest ticks for a bucket of `capacity` tokens whose stamp must tell the last `micros`, at most
    /// [`MAX_MICROS`], without a horizon, if that can be.
    pub(crate) const fn within(self, capacity: u32, micros: u64) -> Self {
        Self::finest(self.tokens, self.period_nanos, capacity, micros)
    }

    /// The finest scale whose ticks are 1/1024 µs or longer, with at most [`IDLE`] of them in `micros`, and at most
    /// [`FILL_TICKS`] to fill the bucket; but a tick is worth no more than a token on their account. (The part of
    /// such a tick that has passed would be kept, as a fraction of a token is, even where it fills the bucket.)
    const fn finest(tokens: u32, period_nanos: u64, capacity: u32, micros: u64) -> Self {
        // Ticks in a microsecond are (numerator << up) / (denominator << down). No shift here loses a bit:
        // numerator < 2^42, denominator < 2^62, micros < 2^53, IDLE < 2^32.
        let numerator = (tokens as u128).wrapping_mul(NANOS as u128);
        let denominator = period_nanos as u128;
        let (mut up, mut down) = (29, 0);
        loop {
            let long_enough = (numerator << up) >> down < denominator << MAX_TICKS_LOG2;
            let fills = (capacity as u64) << up <= FILL_TICKS;
            let tells = (numerator << up).wrapping_mul(micros as u128) <= denominator.wrapping_mul(IDLE as u128);
            if long_enough && (up == 0 || (fills && tells)) {
                break;
            }
            if up > 0 {
                up = u8::wrapping_sub(up, 1);
            } else {
                down = u8::wrapping_add(down, 1);
            }
        }
        let coarse = numerator << up < denominator << down;
        Self { period_nanos, tokens, up, down, coarse }
    }

    /// The ticks in which `tokens` accrue, rounded up to a whole tick.
    pub(crate) const fn ticks(self, tokens: u32) -> u64 {
        // Below 2^62: a capacity that takes 32 bits leaves up at 0, and a smaller one fills in 2^29 ticks.
        let last_of_tick = (1_u64 << self.down).wrapping_sub(1);
        ((tokens as u64) << self.up).wrapping_add(last_of_tick) >> self.down
    }

    /// The whole tokens that accrue in `ticks`, below 2^63, and the ticks that these tokens take. Rounded down: what
    /// remains is the caller's to keep. More than 2^62 tokens, as many as nobody holds, may be told short.
    #[inline]
    pub(crate) const fn tokens(self, ticks: u64) -> (u64, u64) {
        if self.down == 0 {
            let tokens = ticks >> self.up;
            (tokens, tokens << self.up)
        } else {
            cold_path();
            let most = (1 << 62) >> self.down;
            (if ticks < most { ticks } else { most } << self.down, ticks)
        }
    }

    /// The ticks in which as many tokens, and parts of one, accrue as in `ticks` of another scale, rounded up.
    pub(crate) const fn ticks_of(self, ticks: u64, other: Self) -> u64 {
        let (whole, taken) = other.tokens(ticks);
        // Below 2^29, and so is what it is scaled by.
        let rest = ticks.saturating_sub(taken) << self.up;
        let part = (rest >> other.up).wrapping_add(((rest >> other.up) << other.up != rest) as u64);
        let part = part >> self.down | (self.down > 0 && part > 0) as u64;
        #[allow(clippy::cast_possible_truncation, reason = "compared before")]
        let whole = if whole < u32::MAX as u64 { whole as u32 } else { u32::MAX };
        self.ticks(whole).saturating_add(part)
    }

    /// The first microsecond that reads as `tick` or later: ceil(tick · b / a).
    pub(crate) const fn micros(self, tick: u64) -> u128 {
        // tick < 2^64. Where down is 0, period < 2^62; else a tick holds so many tokens that the ticks of all the time
        // that a clock can show are fewer by as much, and only damaged words saturate.
        let dividend = (tick as u128).saturating_mul((self.period_nanos as u128) << self.down);
        let divisor = (self.tokens as u128).wrapping_mul(NANOS as u128) << self.up;
        // Never 0: there is a token in a period. The optimiser does not know that, and would keep a panic.
        let Some(quotient) = dividend.checked_div(divisor) else { return 0 };
        quotient.wrapping_add((quotient.wrapping_mul(divisor) != dividend) as u128)
    }

    /// Tells whether both let tokens accrue at the same speed, for example 60 in a minute and 1 in a second.
    pub(crate) const fn same_rate(self, other: Self) -> bool {
        let left = (self.tokens as u128).wrapping_mul(other.period_nanos as u128);
        let right = (other.tokens as u128).wrapping_mul(self.period_nanos as u128);
        left == right
    }
}

/// A scale with the reciprocal that makes ticks of microseconds.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) struct Ticks {
    pub(crate) scale: Scale,
    /// a / (1024·b).
    pub(crate) ratio: Reciprocal,
}

impl Ticks {
    pub(crate) const fn new(scale: Scale) -> Self {
        // Below 1, since ticks are longer than 1/1024 µs.
        let numerator = (scale.tokens as u128).wrapping_mul(NANOS as u128) << scale.up;
        let denominator = (scale.period_nanos as u128) << MAX_TICKS_LOG2 << scale.down;
        Self { scale, ratio: Reciprocal::new(numerator, denominator) }
    }

    /// floor(micros · a / b), for `micros` up to [`MAX_MICROS`]. Below 2^63.
    #[inline]
    const fn tick(&self, micros: u64) -> u64 {
        upper(self.ratio.times(micros << MAX_TICKS_LOG2))
    }

    /// Reads the time once, for one call.
    #[inline]
    pub(crate) const fn moment(&self, micros: u64) -> Moment {
        let micros = if micros <= MAX_MICROS {
            micros
        } else {
            cold_path();
            MAX_MICROS
        };
        Moment { micros, tick: self.tick(micros) }
    }

    /// The tick from which a bucket that is full at `now` counts again. It is the tick of the reading if that began
    /// within the microsecond, else the next: never more than one microsecond before the reading.
    #[inline]
    pub(crate) const fn full_from(&self, now: Moment) -> u64 {
        // A tick of a microsecond or less can't have begun before.
        if self.scale.coarse { self.full_from_coarse(now) } else { now.tick }
    }

    #[cold]
    const fn full_from_coarse(&self, now: Moment) -> u64 {
        let begun_before = now.micros > 0 && self.tick(now.micros.wrapping_sub(1)) == now.tick;
        now.tick.wrapping_add(begun_before as u64)
    }
}

/// A reading of the clock in the ticks of one quota, from [`Quota::moment`](crate::Quota::moment).
///
/// Use it with that quota alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Moment {
    /// The reading, at most [`MAX_MICROS`].
    pub(crate) micros: u64,
    /// The tick in which it lies, rounded down.
    pub(crate) tick: u64,
}

/// A fraction below 1, as ceil(2^128 · fraction), to multiply with.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) struct Reciprocal {
    pub(crate) high: u64,
    pub(crate) low: u64,
}

impl Reciprocal {
    /// `numerator` is less than `denominator`, and that less than 2^127.
    pub(crate) const fn new(numerator: u128, denominator: u128) -> Self {
        // Long division, a bit at a time: runs once, at compile time for a constant. The remainder stays below the
        // divisor.
        let mut remainder = numerator;
        let mut quotient: u128 = 0;
        let mut bit = 0;
        while bit < 128 {
            remainder <<= 1;
            quotient <<= 1;
            if remainder >= denominator {
                remainder = remainder.wrapping_sub(denominator);
                quotient |= 1;
            }
            bit = u32::wrapping_add(bit, 1);
        }
        // The fraction is below 1 by at least 1/denominator, so rounding up does not reach 2^128.
        if remainder != 0 {
            quotient = quotient.wrapping_add(1);
        }
        Self { high: upper(quotient), low: lower(quotient) }
    }

    /// `factor` · fraction · 2^64, rounded down; too large by less than `factor` · 2^-64 before that. Two
    /// multiplications.
    #[inline]
    pub(crate) const fn times(self, factor: u64) -> u128 {
        // Both products are at most (2^64 − 1)^2, and the carry is below 2^64: the sum fits.
        let carry = (factor as u128).wrapping_mul(self.low as u128) >> 64;
        (factor as u128).wrapping_mul(self.high as u128).wrapping_add(carry)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the upper half of 128 bits has 64")]
const fn upper(value: u128) -> u64 {
    (value >> 64) as u64
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn lower(value: u128) -> u64 {
    value as u64
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "a test may panic")]
mod tests {
    use num_bigint::BigUint;
    use proptest::prelude::*;

    use super::*;

    /// Any value of up to `bits` bits, all magnitudes alike.
    fn magnitude(bits: u32) -> impl Strategy<Value = u64> {
        (1..=bits).prop_flat_map(|bits| (1_u64 << (bits - 1))..=(u64::MAX >> (64 - bits)))
    }

    fn scale() -> impl Strategy<Value = Scale> {
        (magnitude(32), magnitude(32), magnitude(52), 0..1000_u64).prop_map(|(capacity, tokens, micros, nanos)| {
            let period = (micros * NANOS + nanos).min(3_155_760_000_000_000_000);
            Scale::new(u32::try_from(capacity).unwrap(), u32::try_from(tokens).unwrap(), period)
        })
    }

    /// A scale for a stamp without a horizon.
    fn alone() -> impl Strategy<Value = Scale> {
        (scale(), magnitude(32), magnitude(53))
            .prop_map(|(scale, capacity, micros)| scale.within(u32::try_from(capacity).unwrap(), micros))
    }

    /// A scale whose ticks last a microsecond, or nearly.
    fn near_a_microsecond() -> impl Strategy<Value = Scale> {
        (magnitude(32), -3..=3_i64).prop_map(|(tokens, off)| {
            let period = (tokens * NANOS).checked_add_signed(off).unwrap().max(1000);
            let scale = Scale::new(1, u32::try_from(tokens).unwrap(), period).within(1, MAX_MICROS);
            assert_eq!((scale.up, scale.down), (0, 0));
            scale
        })
    }

    fn any_scale() -> impl Strategy<Value = Scale> {
        prop_oneof![scale(), alone(), near_a_microsecond()]
    }

    /// a·numerator and b·denominator of ticks in microseconds.
    fn ratio(scale: Scale) -> (BigUint, BigUint) {
        ((BigUint::from(scale.tokens) * NANOS) << scale.up, BigUint::from(scale.period_nanos) << scale.down)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 30 } else { 20_000 }))]

        #[test]
        fn ticks_are_exact(scale in any_scale(), micros in magnitude(53)) {
            let (a, b) = ratio(scale);
            prop_assert!(b < BigUint::from(1_u8) << 62_u8);
            prop_assert_eq!(BigUint::from(Ticks::new(scale).tick(micros)), BigUint::from(micros) * a / b);
        }

        /// Where the quotient is a whole number, or just below one, rounding would show first.
        #[test]
        fn ticks_are_exact_at_their_edges(scale in any_scale(), tick in magnitude(63)) {
            let (a, b) = ratio(scale);
            let first = (BigUint::from(tick) * &b).div_ceil_by(&a);
            if let Ok(first) = u64::try_from(&first) && first <= MAX_MICROS {
                let ticks = Ticks::new(scale);
                prop_assert_eq!(BigUint::from(ticks.tick(first)), BigUint::from(first) * &a / &b);
                prop_assert!(ticks.tick(first) >= tick);
                prop_assert!(first == 0 || ticks.tick(first - 1) < tick);
                prop_assert_eq!(u64::try_from(scale.micros(tick)), Ok(first));
            }
        }

        #[test]
        fn ticks_are_fine_enough(scale in any_scale()) {
            let (a, b) = ratio(scale);
            prop_assert!(a < b.clone() << MAX_TICKS_LOG2, "a tick is longer than 1/1024 µs");
            prop_assert!(scale.up == 0 || scale.down == 0);
            // One tick holds more than a token only where 2^down tokens accrue within 1/512 µs.
            prop_assert!(scale.down == 0 || a << 1 >= b << MAX_TICKS_LOG2);
        }

        /// Where a tick begins, within the microsecond or just before.
        #[test]
        fn a_full_bucket_at_the_edge_of_a_tick(scale in any_scale(), tick in magnitude(63)) {
            if let Ok(first) = u64::try_from(scale.micros(tick)) && first < MAX_MICROS {
                let ticks = Ticks::new(scale);
                let moment = ticks.moment(first);
                prop_assert_eq!(ticks.full_from(moment), moment.tick);
            }
        }

        #[test]
        fn a_reading_of_a_full_bucket_is_at_most_a_microsecond_early(scale in any_scale(), micros in magnitude(53)) {
            let (a, b) = ratio(scale);
            let ticks = Ticks::new(scale);
            let (tick, full) = (ticks.tick(micros), ticks.full_from(ticks.moment(micros)));
            prop_assert!(BigUint::from(full) * b >= BigUint::from(micros - 1) * &a, "more than a microsecond early");
            // The next tick only where this one began more than a microsecond ago, if at all.
            let began_before = micros > 0 && ticks.tick(micros - 1) == tick;
            prop_assert_eq!(full, tick + u64::from(began_before));
        }
    }

    trait DivCeil {
        fn div_ceil_by(&self, divisor: &Self) -> Self;
    }

    impl DivCeil for BigUint {
        fn div_ceil_by(&self, divisor: &Self) -> Self {
            (self + divisor - 1_u32) / divisor
        }
    }
}
