//! The quota by the time of day.

use std::collections::BTreeMap;

use jiff::Zoned;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use tollgate_core::Quota;

use crate::{Policy, Stats};

/// Another quota from some times of the day on, each day: for a server that allows more at night. Needs the feature `schedule`.
///
/// It goes by what a clock on the wall shows: that of the system, in a time zone, with its change to and from summer time. What
/// others set meanwhile is in force until the next look.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Counts, Policy, Quota, Schedule, Stats};
///
/// let [day, night] = [Quota::per_second(10)?, Quota::per_second(50)?];
/// let policy = Schedule::local().from_time(8, 0, day)?.from_time(20, 30, night)?;
/// let stats = Stats::new(Duration::from_secs(1), Counts::default());
/// let due = policy.decide(&stats, Quota::per_second(1)?).unwrap();
/// assert!(due == day || due == night);
/// assert_eq!(policy.decide(&stats, due), None); // it is in force
/// assert!(Schedule::utc().from_time(24, 0, day).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    zone: TimeZone,
    quotas: BTreeMap<Time, Quota>,
}

impl Schedule {
    /// Makes a schedule by the system's time zone. As long as it has no time, it decides nothing.
    #[must_use]
    pub fn local() -> Self {
        Self::new(TimeZone::system())
    }

    /// Makes a schedule by universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self::new(TimeZone::UTC)
    }

    /// Makes a schedule by the time zone of this name in the IANA's database, which is the system's.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::NoSuchZone`] if it has none of this name.
    pub fn in_zone(name: &str) -> Result<Self, ScheduleError> {
        let zone = TimeZone::get(name).map_err(|_| ScheduleError::NoSuchZone { name: name.to_owned() })?;
        Ok(Self::new(zone))
    }

    const fn new(zone: TimeZone) -> Self {
        Self { zone, quotas: BTreeMap::new() }
    }

    /// Sets the quota from a time on, until the next one of the schedule, be it tomorrow's. For the same time, the later call
    /// counts.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::NoSuchTime`] if it is not from 0:00 to 23:59.
    pub fn from_time(mut self, hour: u8, minute: u8, quota: Quota) -> Result<Self, ScheduleError> {
        let time = i8::try_from(hour).ok().zip(i8::try_from(minute).ok());
        let time = time.and_then(|(hour, minute)| Time::new(hour, minute, 0, 0).ok());
        self.quotas.insert(time.ok_or(ScheduleError::NoSuchTime { hour, minute })?, quota);
        Ok(self)
    }

    /// The quota at a time of the day: that of the latest time before, or else yesterday's last.
    fn due(&self, time: Time) -> Option<Quota> {
        self.quotas.range(..=time).next_back().or_else(|| self.quotas.last_key_value()).map(|(_, quota)| *quota)
    }
}

impl Policy for Schedule {
    fn decide(&self, _: &Stats, current: Quota) -> Option<Quota> {
        let now = Zoned::now().with_time_zone(self.zone.clone());
        self.due(now.time()).filter(|due| *due != current)
    }
}

/// What is wrong with a [`Schedule`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// No clock shows this time: give one from 0:00 to 23:59.
    NoSuchTime {
        /// The hour.
        hour: u8,
        /// The minute.
        minute: u8,
    },
    /// The system knows no time zone of this name: give one as Europe/Berlin, or install the database (tzdata).
    NoSuchZone {
        /// The name.
        name: String,
    },
}

impl std::fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuchTime { hour, minute } => {
                write!(f, "{hour}:{minute:02} is no time of day; give one from 0:00 to 23:59")
            }
            Self::NoSuchZone { name } => {
                write!(
                    f,
                    "{name:?} is no time zone that this system knows; give one as Europe/Berlin, or install tzdata"
                )
            }
        }
    }
}

impl std::error::Error for ScheduleError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_second(tokens: u32) -> Quota {
        Quota::per_second(tokens).unwrap()
    }

    #[test]
    fn each_time_has_its_quota_until_the_next() {
        let schedule = Schedule::utc().from_time(20, 30, per_second(3)).unwrap();
        let schedule = schedule.from_time(8, 0, per_second(1)).unwrap().from_time(8, 0, per_second(2)).unwrap();
        let due = |hour, minute, second| schedule.due(Time::constant(hour, minute, second, 0));
        for (time, tokens) in
            [((0, 0, 0), 3), ((7, 59, 59), 3), ((8, 0, 0), 2), ((20, 29, 59), 2), ((20, 30, 0), 3), ((23, 59, 59), 3)]
        {
            let (hour, minute, second) = time;
            assert_eq!(due(hour, minute, second), Some(per_second(tokens)), "{time:?}");
        }
    }

    #[test]
    fn without_a_time_it_decides_nothing() {
        let stats = crate::policy::tests::stats(1, &[]);
        assert_eq!(Schedule::local().decide(&stats, per_second(1)), None);
    }

    #[test]
    fn times_and_zones_that_are_none() {
        for (hour, minute) in [(24, 0), (0, 60), (255, 255)] {
            let error = Schedule::utc().from_time(hour, minute, per_second(1)).unwrap_err();
            assert_eq!(error, ScheduleError::NoSuchTime { hour, minute });
        }
        let error = Schedule::in_zone("Middle-earth/Shire").unwrap_err();
        assert!(error.to_string().contains("\"Middle-earth/Shire\" is no time zone"), "{error}");
        assert!(
            Schedule::utc().from_time(25, 0, per_second(1)).unwrap_err().to_string().starts_with("25:00 is no time")
        );
    }
}
