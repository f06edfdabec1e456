//! Who is attached to a limiter, what each of them has counted, and who steers it.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::{DefaultWord, Lease, Word};

/// Who has a seat: a process, or a task or a core that you number.
///
/// ```text
/// 1 bit: set      16 bits: space      25 bits: started      22 bits: number
/// ```
///
/// What is larger than its field loses its high bits; Linux has no larger process ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity(u64);

/// Set in the owner's word once the seat is ready, and in every [`Identity`].
const READY: u64 = 1 << 63;
const NUMBER_BITS: u32 = 22;
const STARTED_BITS: u32 = 25;
const SPACE_BITS: u32 = 16;

impl Identity {
    /// Makes the identity of a process: its number, when it was started, so that a later process of the same number
    /// is another, and the space in which the number means it.
    #[inline]
    #[must_use]
    pub const fn new(number: u32, started: u64, space: u32) -> Self {
        let number = number as u64 & ((1 << NUMBER_BITS) - 1);
        let started = (started & ((1 << STARTED_BITS) - 1)) << NUMBER_BITS;
        let space = (space as u64 & ((1 << SPACE_BITS) - 1)) << (NUMBER_BITS + STARTED_BITS);
        Self(READY | space | started | number)
    }

    /// Returns its number.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "22 bits")]
    pub const fn number(self) -> u32 {
        (self.0 & ((1 << NUMBER_BITS) - 1)) as u32
    }

    /// Returns when it was started, as far as it is kept: the low 25 bits.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "25 bits")]
    pub const fn started(self) -> u32 {
        (self.0 >> NUMBER_BITS & ((1 << STARTED_BITS) - 1)) as u32
    }

    /// Returns all of it in a word, which is never 0.
    #[inline]
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Makes an identity of its word; `None` if it is of none.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits & READY == 0 { None } else { Some(Self(bits)) }
    }

    /// Whether its number means something in the space of `other`.
    #[inline]
    #[must_use]
    pub const fn is_in_the_space_of(self, other: Self) -> bool {
        (self.0 ^ other.0) >> (NUMBER_BITS + STARTED_BITS) == 0
    }
}

/// How many threads count in a seat at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// One alone: it adds by a load and a store.
    One,
    /// Several: they add by [`Word::fetch_add`].
    Many,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Calls that were granted.
    GrantedCalls,
    /// Tokens that were granted.
    GrantedTokens,
    /// Calls that were refused: too few tokens, or a pause.
    RefusedCalls,
    /// Attempts that another call was faster than, or that came after a long idle time; each is made again.
    ContendedCalls,
    /// What was limited went well, as its caller reported.
    Ok,
    /// What was limited met an overload, as its caller reported.
    Overload,
    /// Tokens that were given back.
    RefundedTokens,
    /// The microseconds that granted calls waited before.
    WaitedMicros,
}

const COUNTS: usize = 8;

/// What the waits of each class are shorter than, in microseconds: from 2^8 µs to 2^32 µs, each class reaching four times as
/// far as the one before. One more class is of those that are longer.
const WAIT_BOUNDS: [u64; 13] = [
    1 << 8,
    1 << 10,
    1 << 12,
    1 << 14,
    1 << 16,
    1 << 18,
    1 << 20,
    1 << 22,
    1 << 24,
    1 << 26,
    1 << 28,
    1 << 30,
    1 << 32,
];
const WAITS: usize = 14;

/// What was counted, in one seat or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; COUNTS]);

impl Counts {
    /// Returns one of them.
    #[inline]
    #[must_use]
    pub fn get(&self, count: Count) -> u64 {
        self.0.get(count as usize).copied().unwrap_or_default()
    }

    /// Returns how much was counted since `before`, of the same seats.
    #[inline]
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut counts = *self;
        counts.0.iter_mut().zip(before.0).for_each(|(count, before)| *count = count.wrapping_sub(before));
        counts
    }

    /// Returns the sum of both.
    #[inline]
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut counts = *self;
        counts.0.iter_mut().zip(other.0).for_each(|(count, other)| *count = count.wrapping_add(other));
        counts
    }
}

/// How long granted calls waited: so many in each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits([u64; WAITS]);

impl Waits {
    /// Returns each class: how many calls it counts, and the wait in microseconds that all of them were shorter than;
    /// `None` for the last.
    #[inline]
    pub fn classes(&self) -> impl Iterator<Item = (u64, Option<u64>)> {
        self.0.into_iter().zip(WAIT_BOUNDS.into_iter().map(Some).chain([None]))
    }
}

/// A seat: one thread's, or several threads', counts. 256 bytes.
///
/// The counts go on when the seat gets another owner, so that no count is lost when a process dies, and none counts
/// twice.
#[derive(Debug)]
#[repr(C)]
pub struct Seat<W = DefaultWord> {
    /// Zero if the seat is free; the owner's identity, without [`READY`] until `before` is written.
    owner: W,
    /// When the owner was last seen.
    beat: W,
    counts: [W; COUNTS],
    /// The counts when the owner took the seat.
    before: [W; COUNTS],
    waits: [W; WAITS],
}

impl<W> Seat<W> {
    fn from_fn(mut word: impl FnMut() -> W) -> Self {
        Self {
            owner: word(),
            beat: word(),
            counts: core::array::from_fn(|_| word()),
            before: core::array::from_fn(|_| word()),
            waits: core::array::from_fn(|_| word()),
        }
    }
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl Seat {
    const fn new() -> Self {
        Self {
            owner: DefaultWord::new(0),
            beat: DefaultWord::new(0),
            counts: [const { DefaultWord::new(0) }; COUNTS],
            before: [const { DefaultWord::new(0) }; COUNTS],
            waits: [const { DefaultWord::new(0) }; WAITS],
        }
    }
}

impl<W: Word> Seat<W> {
    /// Counts a call that was granted so many tokens, at the time `now` in microseconds.
    #[inline(always)]
    pub fn granted(&self, by: Writers, now: u64, tokens: u32) {
        self.beat(now);
        self.add(by, Count::GrantedCalls, 1);
        self.add(by, Count::GrantedTokens, tokens.into());
    }

    /// Counts a call that was refused.
    #[inline(always)]
    pub fn refused(&self, by: Writers, now: u64) {
        self.beat(now);
        self.add(by, Count::RefusedCalls, 1);
    }

    /// Counts how long a granted call waited.
    #[inline]
    pub fn waited(&self, by: Writers, micros: u64) {
        self.add(by, Count::WaitedMicros, micros);
        let class = WAIT_BOUNDS.iter().position(|bound| micros < *bound).unwrap_or(WAIT_BOUNDS.len());
        if let Some(word) = self.waits.get(class) {
            add(word, by, 1);
        }
    }

    /// Adds to one of the counts.
    #[inline(always)]
    pub fn add(&self, by: Writers, count: Count, n: u64) {
        if let Some(word) = self.counts.get(count as usize) {
            add(word, by, n);
        }
    }

    /// Says that the owner is there.
    #[inline(always)]
    pub fn beat(&self, now: u64) {
        self.beat.store(now, Relaxed);
    }

    fn counts(&self) -> Counts {
        read(&self.counts)
    }

    /// Takes the seat from `owner`, zero if it is free.
    fn take(&self, owner: u64, who: Identity) -> bool {
        // Acquire, pairs with the Release of `leave`: the counts are those of the owner before.
        if self.owner.compare_exchange(owner, who.0 & !READY, Acquire, Relaxed).is_err() {
            return false;
        }
        // Release, pairs with the second fence of `attached`: who sees what is written from here on sees that the owner
        // before is gone.
        self.owner.fence(Release);
        self.beat.store(0, Relaxed);
        for (before, count) in self.before.iter().zip(&self.counts) {
            // Release, pairs with the first fence of `attached`: the beat and the counts are no older than this.
            before.store(count.load(Relaxed), Release);
        }
        self.owner.compare_exchange(who.0 & !READY, who.0, Release, Relaxed).is_ok()
    }

    /// Returns the owner, and what it has counted; `None` if the seat is free, or about to be taken.
    fn attached(&self) -> Option<Attached> {
        let owner = self.owner.load(Acquire);
        let before = read(&self.before);
        // Acquire, pairs with the Release of these in `take`.
        self.owner.fence(Acquire);
        let (counts, last_seen) = (self.counts(), self.beat.load(Relaxed));
        self.owner.fence(Acquire);
        // Still the same, and nobody counted between if it left and is back: all that was read is its own.
        let same = owner & READY != 0 && self.owner.load(Acquire) == owner && read(&self.before) == before;
        same.then(|| Attached { who: Identity(owner), last_seen, counts: counts.since(&before) })
    }
}

fn read<W: Word>(words: &[W; COUNTS]) -> Counts {
    Counts(core::array::from_fn(|at| words.get(at).map_or(0, |word| word.load(Relaxed))))
}

#[inline(always)]
fn add<W: Word>(word: &W, by: Writers, n: u64) {
    match by {
        Writers::One => word.store(word.load(Relaxed).wrapping_add(n), Relaxed),
        Writers::Many => {
            word.fetch_add(n, Relaxed);
        }
    }
}

/// Somebody who has a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Who it is.
    pub who: Identity,
    /// The time of its last call, in microseconds, or of its last [`beat`](Seat::beat); 0 if there was none yet.
    pub last_seen: u64,
    /// What it has counted in this seat.
    pub counts: Counts,
}

/// Who uses a limiter, in memory that all share: `N` seats, in each of which one thread counts what it is granted and
/// refused; one more seat for those who found none free; and a [`Lease`] for who steers it.
///
/// The limiter does not need it, and nobody waits for anyone: whoever dies leaves counts that stay, and a seat that the
/// next one takes.
///
/// # Memory ordering
///
/// Counts are Relaxed. Who takes a seat goes on from the counts of who left it, by an Acquire and a Release. For who
/// died, whoever says so must have seen the death after its last count, as operating systems do.
///
/// # Progress
///
/// Counting in a seat of one's own is wait-free; [`attach`](Self::attach) looks at each seat at most twice.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Count, HandshakeHeader, Identity, Quota, TokenBucket, Writers, quota};
///
/// static BUCKET: TokenBucket = TokenBucket::new(quota!(Quota::per_second(10), burst 2));
/// static HEADER: HandshakeHeader<4> = HandshakeHeader::new();
///
/// // Each task, once: it is number 7, and nobody dies here.
/// let seat = HEADER.attach(Identity::new(7, 0, 0), |_| false).and_then(|index| HEADER.seat(index)).unwrap();
/// for now in 0..3 {
///     match BUCKET.try_acquire_at(now, 1) {
///         Ok(_) => seat.granted(Writers::One, now, 1),
///         Err(_) => seat.refused(Writers::One, now),
///     }
/// }
/// assert_eq!(HEADER.totals().get(Count::GrantedTokens), 2);
/// assert_eq!(HEADER.totals().get(Count::RefusedCalls), 1);
/// assert_eq!(HEADER.attached().map(|attached| attached.who.number()).collect::<Vec<_>>(), [7]);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct HandshakeHeader<const N: usize, W = DefaultWord> {
    lease: Lease<W>,
    /// How many of the seats were ever taken.
    used: W,
    /// So that each seat has lines of its own.
    spare: [W; 30],
    common: Seat<W>,
    seats: [Seat<W>; N],
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl<const N: usize> HandshakeHeader<N> {
    /// Makes a header without anybody.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            lease: Lease::new(),
            used: DefaultWord::new(0),
            spare: [const { DefaultWord::new(0) }; 30],
            common: Seat::new(),
            seats: [const { Seat::new() }; N],
        }
    }
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl<const N: usize> Default for HandshakeHeader<N> {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, W> HandshakeHeader<N, W> {
    /// Makes a header of words, which must be zero.
    #[inline]
    #[must_use]
    pub fn from_fn(mut word: impl FnMut() -> W) -> Self {
        Self {
            lease: Lease::over(word()),
            used: word(),
            spare: core::array::from_fn(|_| word()),
            common: Seat::from_fn(&mut word),
            seats: core::array::from_fn(|_| Seat::from_fn(&mut word)),
        }
    }

    /// Returns the lease of who steers the limiter.
    #[inline]
    #[must_use]
    pub const fn lease(&self) -> &Lease<W> {
        &self.lease
    }

    /// Returns the seat for those who have none of their own, which is for [`Writers::Many`].
    #[inline]
    #[must_use]
    pub const fn common(&self) -> &Seat<W> {
        &self.common
    }

    /// Returns the seat of this number, from [`attach`](Self::attach).
    #[inline]
    #[must_use]
    pub fn seat(&self, index: usize) -> Option<&Seat<W>> {
        self.seats.get(index)
    }
}

impl<const N: usize, W: Word> HandshakeHeader<N, W> {
    /// Takes a seat, and returns its number: a free one, or else that of somebody who is `gone`. `None` if there is
    /// none; then count in the [`common`](Self::common) one.
    #[inline]
    pub fn attach(&self, who: Identity, gone: impl Fn(Identity) -> bool) -> Option<usize> {
        let taken = |free: &dyn Fn(u64) -> bool| {
            self.seats.iter().position(|seat| {
                let owner = seat.owner.load(Relaxed);
                free(owner) && seat.take(owner, who)
            })
        };
        let index =
            taken(&|owner| owner == 0).or_else(|| taken(&|owner| owner != 0 && gone(Identity(owner | READY))))?;
        self.raise_used((index as u64).saturating_add(1));
        Some(index)
    }

    /// Gives a seat back.
    #[inline]
    pub fn leave(&self, index: usize, who: Identity) {
        if let Some(seat) = self.seats.get(index) {
            // Release, pairs with the Acquire of `take`.
            let _ = seat.owner.compare_exchange(who.0, 0, Release, Relaxed);
        }
    }

    /// Frees the seats of those who are `gone`.
    #[inline]
    pub fn free(&self, gone: impl Fn(Identity) -> bool) {
        for seat in self.used() {
            let owner = seat.owner.load(Acquire);
            if owner != 0 && gone(Identity(owner | READY)) {
                let _ = seat.owner.compare_exchange(owner, 0, AcqRel, Relaxed);
            }
        }
    }

    /// Returns who is attached, seat by seat: a process may have several.
    #[inline]
    pub fn attached(&self) -> impl Iterator<Item = Attached> {
        self.used().iter().filter_map(Seat::attached)
    }

    /// Returns what all have counted together, those included who are gone.
    #[inline]
    #[must_use]
    pub fn totals(&self) -> Counts {
        self.used().iter().fold(self.common.counts(), |sum, seat| sum.and(&seat.counts()))
    }

    /// Returns how long all granted calls that waited did so.
    #[inline]
    #[must_use]
    pub fn waits(&self) -> Waits {
        let mut sum = Waits::default();
        for seat in self.used().iter().chain([&self.common]) {
            sum.0.iter_mut().zip(&seat.waits).for_each(|(sum, word)| *sum = sum.wrapping_add(word.load(Relaxed)));
        }
        sum
    }

    fn used(&self) -> &[Seat<W>] {
        // Acquire, pairs with the Release of `raise_used`.
        let used = usize::try_from(self.used.load(Acquire)).unwrap_or(N);
        self.seats.get(..used).unwrap_or(&self.seats)
    }

    fn raise_used(&self, floor: u64) {
        let mut seen = self.used.load(Relaxed);
        while seen < floor {
            match self.used.compare_exchange(seen, floor, Release, Relaxed) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
    }
}
