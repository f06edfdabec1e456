//! What a bucket allows: a rate and a burst, checked once.

use core::fmt;
use core::time::Duration;

use crate::state::IDLE;
use crate::tick::{FILL_TICKS, Moment, Scale, Ticks};
use crate::{MAX_MICROS, TryAcquireError};

const MIN_PERIOD: Duration = Duration::from_micros(1);
/// A hundred Julian years.
const MAX_PERIOD: Duration = Duration::from_hours(36_525 * 24);
/// The longest time from empty to full, in microseconds: 2^63 − 1, about 292 000 years. Every wait fits in a `u64`.
const MAX_FILL_MICROS: u128 = (1 << 63) - 1;

/// A rate and a burst: how fast tokens accrue, and how many a bucket holds.
///
/// The rate is a number of tokens, 1 to 2^32 − 1, for each period, 1 µs to 100 years (36 525 days). The burst, also
/// called the capacity, is 1 to 2^32 − 1 tokens, and is the number of tokens of one period until
/// [`with_burst`](Self::with_burst) sets it.
///
/// The constructors check everything and are `const`, so that [`quota!`](crate::quota) turns a bad quota into a
/// compile error. What they accept never fails or overflows later.
///
/// Two quotas are equal when they have the same burst and let tokens accrue at the same speed: 60 a minute is 1 a
/// second.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tollgate_core::{Quota, QuotaError};
///
/// let api = Quota::per_hour(5000)?.with_burst(100)?;
/// assert_eq!(api.capacity(), 100);
/// assert_eq!(api.to_string(), "5000 per 3600s, burst 100");
///
/// let slow = Quota::new(1, Duration::from_secs(15))?;
/// assert_eq!(slow.capacity(), 1);
///
/// assert_eq!(Quota::per_second(0), Err(QuotaError::ZeroRate));
/// # Ok::<(), QuotaError>(())
/// ```
#[derive(Clone, Copy)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Quota {
    pub(crate) capacity: u32,
    pub(crate) ticks: Ticks,
}

impl Quota {
    /// Allows `tokens` in each `period`, with a burst of as many.
    ///
    /// # Errors
    ///
    /// [`QuotaError::ZeroRate`], [`QuotaError::PeriodTooShort`] and [`QuotaError::PeriodTooLong`] name the argument
    /// that is out of range.
    #[inline]
    pub const fn new(tokens: u32, period: Duration) -> Result<Self, QuotaError> {
        Self::checked(tokens, tokens, period)
    }

    /// Allows `tokens` in each second, with a burst of as many.
    ///
    /// # Errors
    ///
    /// [`QuotaError::ZeroRate`] if `tokens` is 0.
    #[inline]
    pub const fn per_second(tokens: u32) -> Result<Self, QuotaError> {
        Self::new(tokens, Duration::from_secs(1))
    }

    /// Allows `tokens` in each minute, with a burst of as many.
    ///
    /// # Errors
    ///
    /// [`QuotaError::ZeroRate`] if `tokens` is 0.
    #[inline]
    pub const fn per_minute(tokens: u32) -> Result<Self, QuotaError> {
        Self::new(tokens, Duration::from_mins(1))
    }

    /// Allows `tokens` in each hour, with a burst of as many.
    ///
    /// # Errors
    ///
    /// [`QuotaError::ZeroRate`] if `tokens` is 0.
    #[inline]
    pub const fn per_hour(tokens: u32) -> Result<Self, QuotaError> {
        Self::new(tokens, Duration::from_hours(1))
    }

    /// Allows `tokens` in each day of 24 hours, with a burst of as many.
    ///
    /// # Errors
    ///
    /// [`QuotaError::ZeroRate`] if `tokens` is 0.
    #[inline]
    pub const fn per_day(tokens: u32) -> Result<Self, QuotaError> {
        Self::new(tokens, Duration::from_hours(24))
    }

    /// Returns the same rate with a burst of `capacity` tokens.
    ///
    /// # Errors
    ///
    /// [`QuotaError::ZeroCapacity`] if `capacity` is 0. [`QuotaError::FillTimeTooLong`] if so slow a rate would need
    /// more than 2^63 − 1 µs (292 000 years) to fill so large a bucket.
    #[inline]
    pub const fn with_burst(self, capacity: u32) -> Result<Self, QuotaError> {
        Self::checked(capacity, self.tokens(), self.period())
    }

    const fn checked(capacity: u32, tokens: u32, period: Duration) -> Result<Self, QuotaError> {
        if capacity == 0 && tokens != 0 {
            return Err(QuotaError::ZeroCapacity);
        }
        if tokens == 0 {
            return Err(QuotaError::ZeroRate);
        }
        let nanos = period.as_nanos();
        if nanos < MIN_PERIOD.as_nanos() {
            return Err(QuotaError::PeriodTooShort { period });
        }
        if nanos > MAX_PERIOD.as_nanos() {
            return Err(QuotaError::PeriodTooLong { period });
        }
        #[allow(clippy::cast_possible_truncation, reason = "at most a hundred years, 2^62 ns")]
        let scale = Scale::new(capacity, tokens, nanos as u64);
        if scale.micros(scale.ticks(capacity)) > MAX_FILL_MICROS {
            return Err(QuotaError::FillTimeTooLong { capacity, tokens, period });
        }
        Ok(Self { capacity, ticks: Ticks::new(scale) })
    }

    /// Returns the burst: the most tokens that the bucket holds, and the most that one call can take.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns the tokens that accrue in each [`period`](Self::period).
    #[inline]
    #[must_use]
    pub const fn tokens(&self) -> u32 {
        self.ticks.scale.tokens
    }

    /// Returns the time in which [`tokens`](Self::tokens) accrue.
    #[inline]
    #[must_use]
    pub const fn period(&self) -> Duration {
        Duration::from_nanos(self.ticks.scale.period_nanos)
    }

    /// Converts a reading of the clock, in microseconds, for the transitions of [`State`](crate::State). Two
    /// multiplications.
    #[inline]
    #[must_use]
    pub const fn moment(&self, micros: u64) -> Moment {
        self.ticks.moment(micros)
    }

    /// The tick from which a bucket that is full at `now` counts again.
    #[inline]
    pub(crate) const fn full_from(&self, now: Moment) -> u64 {
        self.ticks.full_from(now)
    }

    /// Refuses what no bucket of this quota ever holds.
    #[inline]
    pub(crate) const fn check(&self, n: u32) -> Result<(), TryAcquireError> {
        let capacity = self.capacity;
        if n > capacity { Err(TryAcquireError::ExceedsCapacity { requested: n, capacity }) } else { Ok(()) }
    }

    /// The most tokens that a bucket can owe: as many as it holds, but no more than accrue in the ticks by which a
    /// stamp can be ahead, which are fewer only if it holds more than 2^29.
    pub(crate) const fn most_owed(&self) -> u32 {
        let (most, _) = self.scale().tokens(FILL_TICKS);
        #[allow(clippy::cast_possible_truncation, reason = "compared before")]
        if most < self.capacity as u64 { most as u32 } else { self.capacity }
    }

    /// The ticks in which the most tokens that can be owed accrue.
    pub(crate) const fn most_owed_ticks(&self) -> u64 {
        self.scale().ticks(self.most_owed())
    }

    /// The same quota, counted in ticks of which a stamp without a horizon can tell the last `micros`, and with no
    /// larger a burst than it can tell the time of.
    pub(crate) const fn within(&self, micros: u64) -> Self {
        let micros = if micros < MAX_MICROS { micros } else { MAX_MICROS };
        let scale = self.scale().within(self.capacity, micros);
        let (most, _) = scale.tokens(IDLE);
        #[allow(clippy::cast_possible_truncation, reason = "compared before")]
        let capacity = if most < self.capacity as u64 { most as u32 } else { self.capacity };
        Self { capacity, ticks: Ticks::new(scale) }
    }

    /// The same quota, as the constructors make it.
    pub(crate) const fn in_finest_ticks(&self) -> Self {
        let Scale { tokens, period_nanos, .. } = self.scale();
        Self { capacity: self.capacity, ticks: Ticks::new(Scale::new(self.capacity, tokens, period_nanos)) }
    }

    pub(crate) const fn scale(&self) -> Scale {
        self.ticks.scale
    }
}

impl PartialEq for Quota {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.capacity == other.capacity && self.scale().same_rate(other.scale())
    }
}

impl Eq for Quota {}

impl fmt::Debug for Quota {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quota({self})")
    }
}

/// Shows the quota as it was given: `5000 per 3600s, burst 100`.
impl fmt::Display for Quota {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} per {:?}, burst {}", self.tokens(), self.period(), self.capacity)
    }
}

/// Makes a constant [`Quota`]; one that is out of range does not compile.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Quota, TokenBucket, quota};
///
/// static LOGIN: TokenBucket = TokenBucket::new(quota!(Quota::per_minute(10)));
/// static API: TokenBucket = TokenBucket::new(quota!(Quota::per_hour(5000), burst 100));
/// assert!(API.try_acquire_at(0, 100).is_ok());
/// assert!(API.try_acquire_at(0, 1).is_err());
/// ```
///
/// ```compile_fail,E0080
/// use tollgate_core::{Quota, TokenBucket, quota};
///
/// static NEVER: TokenBucket = TokenBucket::new(quota!(Quota::per_second(0)));
/// ```
#[macro_export]
macro_rules! quota {
    ($rate:expr $(,)?) => {
        const {
            match $rate {
                ::core::result::Result::Ok(quota) => quota,
                ::core::result::Result::Err(error) => ::core::panic!("{}", error.reason()),
            }
        }
    };
    ($rate:expr, burst $capacity:expr $(,)?) => {
        $crate::quota!($crate::quota!($rate).with_burst($capacity))
    };
}

/// Why a quota can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum QuotaError {
    /// The bucket would hold nothing: give a burst of 1 or more.
    ZeroCapacity,
    /// Nothing would ever accrue: give 1 token or more, in a longer period if need be.
    ZeroRate,
    /// The period is below 1 µs: give fewer tokens in a longer one.
    #[non_exhaustive]
    PeriodTooShort {
        /// The period asked for.
        period: Duration,
    },
    /// The period is above 100 years: give more tokens in a shorter one.
    #[non_exhaustive]
    PeriodTooLong {
        /// The period asked for.
        period: Duration,
    },
    /// Filling the empty bucket would take more than 2^63 − 1 µs: give a smaller burst or a faster rate.
    #[non_exhaustive]
    FillTimeTooLong {
        /// The burst asked for.
        capacity: u32,
        /// The tokens for each period.
        tokens: u32,
        /// The period.
        period: Duration,
    },
}

impl QuotaError {
    /// Returns the cause without its numbers, for `const` contexts, where nothing can be formatted.
    #[inline]
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::ZeroCapacity => "a burst of 0 tokens grants nothing; it must be at least 1",
            Self::ZeroRate => "a rate of 0 tokens grants nothing; it must be at least 1 token in a period",
            Self::PeriodTooShort { .. } => "the period is shorter than 1µs",
            Self::PeriodTooLong { .. } => "the period is longer than 100 years (36525 days)",
            Self::FillTimeTooLong { .. } => {
                "the bucket would take longer than 292000 years to fill; lower the burst or raise the rate"
            }
        }
    }
}

impl fmt::Display for QuotaError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroCapacity | Self::ZeroRate => f.write_str(self.reason()),
            Self::PeriodTooShort { period } | Self::PeriodTooLong { period } => {
                write!(f, "{}: {period:?}", self.reason())
            }
            Self::FillTimeTooLong { capacity, tokens, period } => {
                write!(f, "{}: burst {capacity} at {tokens} per {period:?}", self.reason())
            }
        }
    }
}

impl core::error::Error for QuotaError {}
