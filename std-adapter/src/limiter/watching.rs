//! Who uses a limiter, what they have counted, and what they do just now.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tollgate_core::{Count, Counts, DefaultWord, Observation, Observed, Seat, Waits, Watcher, Word, Writers};

use super::{Access, SharedRateLimiter};
use crate::counting::{Table, is_gone, this_process};
use crate::layout::{Header, Ring, WATCHED};

/// How long a file is watched after somebody has looked for events: should that one die, it costs nobody more.
const WATCH_MICROS: u64 = 3_000_000;

/// A process that uses a limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// Its id; `None` if it is in another namespace of process ids.
    pub id: Option<u32>,
    /// How many seats it has: one for each thread that it had at the same time, and each time that it has the file open.
    pub seats: u32,
    /// How long ago its last call was, or its opening of the file; zero if it is about to count its first one.
    pub idle: Duration,
    /// What it has counted in these seats.
    pub counts: Counts,
}

/// What was limited: how it went, as its caller says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It went well.
    Ok,
    /// It met an overload: 429 or 503, a timeout.
    Overload,
}

/// What an event of a limiter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A call was granted tokens.
    Granted {
        /// How many tokens, `u16::MAX` if it was more.
        tokens: u16,
        /// How long ago.
        ago: Duration,
    },
    /// A call was refused.
    Refused {
        /// How many tokens it asked for, `u16::MAX` if it was more.
        tokens: u16,
        /// How long ago.
        ago: Duration,
    },
    /// So many events were gone before they were read.
    Missed(u64),
}

/// The numbers of events in the ring.
const GRANTED: u8 = 1;
const REFUSED: u8 = 2;

/// Watching.
impl SharedRateLimiter {
    /// Returns what all who use the limiter have counted together since it was made, those included who have ended. Those that
    /// don't count ([`Options::counters`](crate::Options::counters)) are not in it.
    ///
    /// Exact: a call counts when it returns. A thread that is killed after it has taken, and before it has counted, leaves one call out.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Count, Quota, SharedRateLimiter};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limit");
    /// let limiter = SharedRateLimiter::create(&path, Quota::per_hour(10)?)?;
    /// limiter.try_acquire(7)?;
    /// assert!(limiter.try_acquire(7).is_err());
    /// let other = SharedRateLimiter::open(&path)?;
    /// assert_eq!(other.counts().get(Count::GrantedTokens), 7);
    /// assert_eq!(other.counts().get(Count::RefusedCalls), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> Counts {
        match self.header() {
            Some(header) => header.totals(),
            None => self.page.header().totals(),
        }
    }

    /// Returns how long calls waited that were granted: those of [`acquire`](Self::acquire) and
    /// [`acquire_timeout`](Self::acquire_timeout), and those [recorded](Self::record_wait).
    #[must_use]
    pub fn waits(&self) -> Waits {
        match self.header() {
            Some(header) => header.waits(),
            None => self.page.header().waits(),
        }
    }

    /// Returns the processes that have the limiter open and count, this one included (in a child that was forked, once it has made a
    /// call); and frees the seats of those that have died. At most a hundred threads have seats; what others do is in
    /// [`counts`](Self::counts) alone. Of processes in another namespace of process ids, none can be known to have died; so their seats are
    /// free when the machine starts again.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, SharedRateLimiter};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limit");
    /// let limiter = SharedRateLimiter::create(&path, Quota::per_hour(10)?)?;
    /// let processes = limiter.attached();
    /// assert_eq!(processes[0].id, Some(std::process::id()));
    /// assert_eq!(processes.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn attached(&self) -> Vec<Process> {
        let who = this_process();
        let gone = |other| who.is_some_and(|who| is_gone(other, who));
        let seats: Vec<_> = match self.header() {
            Some(header) => {
                header.free(gone);
                header.attached().collect()
            }
            None => self.page.header().attached().filter(|seat| !gone(seat.who)).collect(),
        };
        let now = self.now_micros();
        let mut processes: Vec<(_, Process)> = Vec::new();
        for seat in seats {
            let id = who.filter(|who| seat.who.is_in_the_space_of(*who)).map(|_| seat.who.number());
            let last_seen = if seat.last_seen == 0 { now } else { seat.last_seen };
            let idle = Duration::from_micros(now.saturating_sub(last_seen));
            match processes.iter_mut().find(|(who, _)| *who == seat.who) {
                Some((_, process)) => {
                    process.seats = process.seats.saturating_add(1);
                    process.idle = process.idle.min(idle);
                    process.counts = process.counts.and(&seat.counts);
                }
                None => processes.push((seat.who, Process { id, seats: 1, idle, counts: seat.counts })),
            }
        }
        processes.into_iter().map(|(_, process)| process).collect()
    }

    /// Says how it went, what a token was taken for: for a [`Policy`](crate::Policy) that goes by it. It counts even without
    /// [counters](crate::Options::counters), but not in a file that may only be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Count, Outcome, Quota, SharedRateLimiter};
    ///
    /// let limiter = SharedRateLimiter::in_memory(Quota::per_hour(10)?)?;
    /// limiter.try_acquire(1)?;
    /// let status = 429; // what the server says
    /// limiter.report(if matches!(status, 429 | 503) { Outcome::Overload } else { Outcome::Ok });
    /// assert_eq!(limiter.counts().get(Count::Overload), 1);
    /// assert!(limiter.try_acquire(10).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn report(&self, outcome: Outcome) {
        let count = match outcome {
            Outcome::Ok => Count::Ok,
            Outcome::Overload => Count::Overload,
        };
        let now = self.now_micros();
        let note = |seat: &Seat, by| {
            seat.beat(now);
            seat.add(by, count, 1);
        };
        match (&self.access, self.header()) {
            (Access::Counted(table), Some(header)) => table.count(header, note),
            (_, Some(header)) => note(header.common(), Writers::Many),
            (_, None) => {}
        }
    }

    /// Counts a wait for tokens among [`waits`](Self::waits): for who waits in a way of his own, as in
    /// asynchronous programs.
    pub fn record_wait(&self, wait: Duration) {
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.seat(|seat, by| seat.waited(by, micros));
    }

    /// Returns who uses the limiter; `None` where the file may only be read.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.page.users().map(|users| &users.header)
    }

    /// Returns the last events; `None` where the file may only be read. Calls write to it while somebody
    /// [watches](Self::events).
    #[must_use]
    pub fn ring(&self) -> Option<&Ring> {
        self.page.users().map(|users| &users.ring)
    }

    /// Watches what all processes do with the limiter, from now on; `None` where the file may only be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Event, Quota, SharedRateLimiter};
    ///
    /// let limiter = SharedRateLimiter::in_memory(Quota::per_hour(10)?)?;
    /// let mut events = limiter.events().unwrap();
    /// limiter.try_acquire(7)?;
    /// assert!(limiter.try_acquire(8).is_err());
    /// assert!(matches!(events.read(), Some(Event::Granted { tokens: 7, .. })));
    /// assert!(matches!(events.read(), Some(Event::Refused { tokens: 8, .. })));
    /// assert_eq!(events.read(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn events(&self) -> Option<Events<'_>> {
        let ring = self.ring()?;
        // The ring itself is armed for good by the first who comes: calls write to it while WATCHED says so.
        std::mem::forget(ring.watch());
        let events = Events { limiter: self, watcher: ring.follow() };
        events.arm();
        Some(events)
    }

    /// Says that this process is there.
    pub(crate) fn beat(&self) {
        let now = self.now_micros();
        self.seat(|seat, _| seat.beat(now));
    }

    /// Counts a call for `n` tokens.
    #[inline(always)]
    pub(super) fn note(&self, table: &Table, now: u64, n: u32, granted: bool) {
        let Some(users) = self.page.users() else { return };
        table.count(&users.header, |seat, by| if granted { seat.granted(by, now, n) } else { seat.refused(by, now) });
        if self.is_watched(now) {
            observe(&users.ring, now, n, granted);
        }
    }

    /// Adds to a count, if this limiter counts.
    pub(super) fn count(&self, count: Count, n: u64) {
        self.seat(|seat, by| seat.add(by, count, n));
    }

    fn seat(&self, count: impl Fn(&Seat, Writers)) {
        if let (Access::Counted(table), Some(header)) = (&self.access, self.header()) {
            table.count(header, count);
        }
    }

    /// Whether somebody reads the events. What is much further ahead than anybody watches is of no watcher.
    #[inline(always)]
    fn is_watched(&self, now: u64) -> bool {
        self.page.cell(WATCHED).load(Relaxed).wrapping_sub(now).wrapping_sub(1) < 2 * WATCH_MICROS
    }
}

#[cold]
fn observe(ring: &Ring, now: u64, n: u32, granted: bool) {
    ring.push(now, if granted { GRANTED } else { REFUSED }, n);
}

/// Gives the seats back.
impl Drop for SharedRateLimiter {
    fn drop(&mut self) {
        if let (Access::Counted(table), Some(header)) = (&self.access, self.header()) {
            table.leave(header);
        }
    }
}

/// The events of a limiter as they come, from [`SharedRateLimiter::events`].
///
/// While it is read, at least every three seconds, calls on the limiter write events, which takes them longer.
#[derive(Debug)]
pub struct Events<'a> {
    limiter: &'a SharedRateLimiter,
    watcher: Watcher<'a, 256, DefaultWord>,
}

impl Events<'_> {
    /// Reads the next event; `None` if there is none yet.
    pub fn read(&mut self) -> Option<Event> {
        self.arm();
        let Observation { kind, count, micros, .. } = match self.watcher.read()? {
            Observed::Event(event) => event,
            Observed::Missed(missed) => return Some(Event::Missed(missed)),
        };
        // The low bits of both: an event is read long before they have come round.
        #[allow(clippy::cast_possible_truncation, reason = "the low bits count")]
        let now = self.limiter.now_micros() as u32;
        let ago = Duration::from_micros(now.wrapping_sub(micros).into());
        Some(if kind == GRANTED {
            Event::Granted { tokens: count, ago }
        } else {
            Event::Refused { tokens: count, ago }
        })
    }

    fn arm(&self) {
        let until = self.limiter.now_micros().saturating_add(WATCH_MICROS);
        // Another watcher, if there is one, has asked for the same, but for the time since.
        self.limiter.page.cell(WATCHED).store(until);
    }
}
