//! One thread beside a program's limiters, which asks their policies for the quotas.

use std::fmt;
use std::io;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

use tollgate_core::{Clock, Counts, Quota};

use crate::layout::{Header, Ring};
use crate::mapping::forks;
use crate::tell;
use crate::{FileError, MachineClock, Policy, SharedRateLimiter, Stats};

/// What a [`Sidecar`] can steer: a [`SharedRateLimiter`], or a limiter of yours around one.
pub trait AdaptiveInstance: Send + Sync {
    /// Who uses it; `None` if it can't be steered from here.
    fn header(&self) -> Option<&Header>;

    /// Its last events; `None` if it has none.
    fn ring(&self) -> Option<&Ring>;

    /// Decides on its quota.
    fn policy(&self) -> &dyn Policy;

    /// The quota in force.
    fn quota(&self) -> Quota;

    /// Its time, in microseconds, which all who use it share.
    fn now_micros(&self) -> u64;

    /// Puts a decision in force.
    ///
    /// # Errors
    ///
    /// As for [`SharedRateLimiter::set_quota`]. Nothing was changed; it will be decided anew.
    fn apply(&self, decision: Quota) -> Result<(), FileError>;

    /// Publishes what there is to see; called at each look. By itself, it does nothing; a [`SharedRateLimiter`] publishes to the
    /// recorder of the `metrics` crate, with the feature of that name.
    fn publish(&self) {}
}

impl AdaptiveInstance for SharedRateLimiter {
    fn header(&self) -> Option<&Header> {
        self.header()
    }

    fn ring(&self) -> Option<&Ring> {
        self.ring()
    }

    fn policy(&self) -> &dyn Policy {
        self.policy()
    }

    fn quota(&self) -> Quota {
        self.quota()
    }

    fn now_micros(&self) -> u64 {
        self.now_micros()
    }

    fn apply(&self, decision: Quota) -> Result<(), FileError> {
        self.set_quota(decision)
    }

    #[cfg(feature = "metrics")]
    fn publish(&self) {
        crate::publish::publish(self);
    }
}

/// A thread that looks at limiters from time to time, and puts in force what their policies decide.
///
/// There is one for the whole process, for [`SidecarBox::new`]; make others for tests. The thread lives while a limiter is
/// registered, and sleeps between two looks. Of all processes whose sidecars have a limiter whose policy
/// [steers](Policy::steers), one steers it at a time, by a lease in the file: should it die, another one does, three periods
/// later.
///
/// After fork(2), the child's copies of registered limiters work on, and are not steered from there; limiters that the child registers
/// are, with a sidecar that it gets or makes itself: a copy of one of its parent's does nothing.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Policy, Quota, SharedRateLimiter, Sidecar, Stats};
///
/// #[derive(Debug)]
/// struct Hourly(Quota);
/// impl Policy for Hourly {
///     fn decide(&self, _: &Stats, current: Quota) -> Option<Quota> {
///         (current != self.0).then_some(self.0)
///     }
/// }
///
/// let sidecar = Sidecar::new(Duration::from_millis(1));
/// let policy = Hourly(Quota::per_hour(7)?);
/// let limiter = sidecar.register(SharedRateLimiter::in_memory(Quota::per_hour(5)?)?.with_policy(policy))?;
/// while limiter.quota() != Quota::per_hour(7)? {
///     std::thread::sleep(Duration::from_millis(1));
/// }
/// assert!(limiter.try_acquire(5).is_ok());
/// assert!(limiter.try_acquire(2).is_err()); // the level was kept
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sidecar {
    shared: Handle,
    /// The generation of the process that it is of.
    generation: u32,
}

#[derive(Clone, Debug)]
enum Handle {
    Global(&'static Shared),
    Own(Arc<Shared>),
}

impl Deref for Handle {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        match self {
            Self::Global(shared) => shared,
            Self::Own(shared) => shared,
        }
    }
}

/// What the owner and the thread share. In a child that was forked, its locks may be held by threads that are not there: so
/// it is used in the process that made it alone.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    instances: Vec<Arc<Instance>>,
    period: Duration,
    thread: Option<JoinHandle<()>>,
    /// The number of the thread that may run: a later one has replaced those before.
    run: u64,
}

/// How long the thread sleeps between two looks, unless told otherwise.
const PERIOD: Duration = Duration::from_secs(1);

/// The sidecars of a process, and of the children, and children's children, that were forked of it: in each generation another
/// one. Further down, there is none.
static GLOBAL: [Shared; 16] = [const { Shared::new(PERIOD) }; 16];

impl Shared {
    const fn new(period: Duration) -> Self {
        let state = State { instances: Vec::new(), period, thread: None, run: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sidecar {
    /// Makes a sidecar that looks at its limiters once in each `period`, at least a millisecond.
    #[must_use]
    pub fn new(period: Duration) -> Self {
        Self::of_this_process(Handle::Own(Arc::new(Shared::new(at_least(period)))))
    }

    /// Returns that of the process, which looks once a second; `None` in a process that was forked more than fifteen times in a
    /// line without starting a program.
    #[must_use]
    pub fn global() -> Option<Self> {
        forks::count().ok()?;
        let generation = usize::try_from(forks::generation()).ok()?;
        GLOBAL.get(generation.checked_sub(1)?).map(|shared| Self::of_this_process(Handle::Global(shared)))
    }

    fn of_this_process(shared: Handle) -> Self {
        // Where that fails, so does `register`.
        let _ = forks::count();
        Self { shared, generation: forks::generation() }
    }

    /// What it shares with its thread; `None` in a child that was forked, where that is not.
    fn shared(&self) -> Option<&Handle> {
        (self.generation == forks::generation()).then_some(&self.shared)
    }

    /// Sets how long the thread sleeps between two looks, at least a millisecond. With more than twenty minutes, processes may take turns in
    /// steering a file, since a lease is of an hour at most.
    pub fn set_period(&self, period: Duration) {
        if let Some(shared) = self.shared() {
            shared.lock().period = at_least(period);
            shared.changed.notify_all();
        }
    }

    /// Registers a limiter, until the box is dropped.
    ///
    /// # Errors
    ///
    /// No thread can be started; or the sidecar is the parent's of a process that was forked: make another one.
    pub fn register<L: AdaptiveInstance + 'static>(&self, limiter: L) -> io::Result<SidecarBox<L>> {
        forks::count()?;
        let of_the_parent =
            || io::Error::other("this sidecar is of the process that this one was forked of; make another one");
        let shared = self.shared().ok_or_else(of_the_parent)?;
        let limiter = Arc::new(limiter);
        let instance = Arc::new(Instance::new(limiter.clone()));
        let mut state = shared.lock();
        if state.thread.is_none() {
            state.run = state.run.wrapping_add(1);
            let (shared, run) = (shared.clone(), state.run);
            let thread = std::thread::Builder::new().name("tollgate-sidecar".to_owned());
            state.thread = Some(thread.spawn(move || watch(&shared, run))?);
        }
        state.instances.push(instance.clone());
        drop(state);
        Ok(SidecarBox { limiter, registered: Some((self.clone(), instance)) })
    }
}

fn at_least(period: Duration) -> Duration {
    period.max(Duration::from_millis(1))
}

/// What the thread does.
fn watch(shared: &Shared, run: u64) {
    let mut looked = MachineClock.now_micros();
    loop {
        let state = shared.lock();
        if state.run != run {
            return;
        }
        let period = state.period;
        let slept = Duration::from_micros(MachineClock.now_micros().saturating_sub(looked));
        if slept < period {
            // It may be woken early: to end, or to go by another period.
            drop(shared.changed.wait_timeout(state, period - slept));
            continue;
        }
        let instances = state.instances.clone();
        // What the policies do meanwhile, they do to whom they like.
        drop(state);
        looked = MachineClock.now_micros();
        for instance in instances {
            // What panics in there, such as a policy, does no harm to the other limiters.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(move || instance.look(period))) {
                // Nor does it when it is dropped.
                std::mem::forget(panic);
            }
        }
    }
}

/// A registered limiter.
struct Instance {
    limiter: Arc<dyn AdaptiveInstance>,
    registered: AtomicBool,
    /// Held during a look.
    seen: Mutex<Seen>,
    /// This one among those that steer the same file.
    holder: u32,
}

/// What was seen at the last look.
struct Seen {
    at: u64,
    counts: Counts,
}

impl Instance {
    fn new(limiter: Arc<dyn AdaptiveInstance>) -> Self {
        let counts = limiter.header().map(Header::totals).unwrap_or_default();
        let seen = Seen { at: limiter.now_micros(), counts };
        #[allow(clippy::cast_possible_truncation, reason = "some bits of it")]
        let holder = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0) as u32;
        Self { limiter, registered: AtomicBool::new(true), seen: Mutex::new(seen), holder }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, period: Duration) {
        let mut seen = self.seen();
        if !self.registered.load(Relaxed) {
            return;
        }
        self.limiter.publish();
        let Some(header) = self.limiter.header() else { return };
        let (now, counts) = (self.limiter.now_micros(), header.totals());
        let elapsed = Duration::from_micros(now.saturating_sub(seen.at));
        let stats = Stats::new(elapsed, counts.since(&seen.counts));
        (seen.at, seen.counts) = (now, counts);
        let policy = self.limiter.policy();
        let lease = u64::try_from(period.saturating_mul(3).as_micros()).unwrap_or(u64::MAX);
        if policy.steers() && header.lease().hold(now, now.saturating_add(lease), self.holder) {
            let mut steering = Steering { instance: self, header, goes_on: false };
            let decision = policy.decide(&stats, self.limiter.quota());
            match decision.map_or(Ok(()), |decision| self.limiter.apply(decision)) {
                // A policy may have dropped the box of its own limiter.
                Ok(()) => steering.goes_on = self.registered.load(Relaxed),
                // It is decided again at the next look, by this process or by one that can.
                Err(error) => tell::not_applied(&error),
            }
        }
    }

    /// Sees to it that there is no look after those in progress.
    fn end(&self) {
        self.registered.store(false, Relaxed);
    }

    /// Gives up what it has, unless it is being looked at: then the look does.
    fn give_up(&self, seen: Option<MutexGuard<'_, Seen>>) {
        if let (Some(_), Some(header)) = (seen, self.limiter.header()) {
            header.lease().give_up(self.holder);
        }
    }
}

/// The right to steer, which is given up at the end of a look, unless it goes on: so also when a policy panics.
struct Steering<'a> {
    instance: &'a Instance,
    header: &'a Header,
    goes_on: bool,
}

impl Drop for Steering<'_> {
    fn drop(&mut self) {
        if !self.goes_on {
            self.header.lease().give_up(self.instance.holder);
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("holder", &self.holder).finish_non_exhaustive()
    }
}

/// A limiter that is registered with a [`Sidecar`], until it is dropped: then it waits for a look in progress, and, of the last
/// one, for the end of the thread.
#[derive(Debug)]
pub struct SidecarBox<L> {
    limiter: Arc<L>,
    registered: Option<(Sidecar, Arc<Instance>)>,
}

impl<L: AdaptiveInstance + 'static> SidecarBox<L> {
    /// Registers a limiter with the sidecar of the process.
    ///
    /// # Errors
    ///
    /// No thread can be started; or the process was forked too often, see [`Sidecar::global`].
    pub fn new(limiter: L) -> io::Result<Self> {
        forks::count()?;
        let sidecar = Sidecar::global().ok_or_else(|| {
            io::Error::other("this process was forked more than fifteen times in a line; start a program in it")
        })?;
        sidecar.register(limiter)
    }
}

impl<L> Deref for SidecarBox<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.limiter
    }
}

impl<L> Drop for SidecarBox<L> {
    fn drop(&mut self) {
        let Some((sidecar, instance)) = self.registered.take() else { return };
        let Some(shared) = sidecar.shared() else { return };
        instance.end();
        let mut state = shared.lock();
        state.instances.retain(|other| !Arc::ptr_eq(other, &instance));
        let mut thread = None;
        if state.instances.is_empty() {
            state.run = state.run.wrapping_add(1);
            thread = state.thread.take();
            shared.changed.notify_all();
        }
        let is_this = |id: ThreadId| id == std::thread::current().id();
        let own = thread.as_ref().or(state.thread.as_ref()).is_some_and(|thread| is_this(thread.thread().id()));
        drop(state);
        // Dropped by a policy, in the thread itself: that does not wait for its own look, nor for its end.
        if own {
            instance.give_up(match instance.seen.try_lock() {
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                outcome => outcome.ok(),
            });
        } else {
            instance.give_up(Some(instance.seen()));
            // It can't have panicked.
            let _ = thread.map(JoinHandle::join);
        }
    }
}
