//! Two parties empty one bucket: the main program, and an interrupt of a timer or another core. In the end the tokens
//! must add up: none taken twice, none lost.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use tollgate_core::{AtomicTokenBucket, DefaultWord, NoClock, Quota, State, TokenBucket, Word, Words, quota};

use crate::Report;

/// So slow that nothing accrues while they play.
const QUOTA: Quota = quota!(Quota::per_day(1), burst 1_100_000);

/// A contest over the target's own word, one over portable-atomic's, and one over a word that is broken, in which the
/// tokens must *not* add up: it shows that the two really meet.
pub struct Contests {
    own: Contest<DefaultWord>,
    portable: Contest<portable_atomic::AtomicU64>,
    broken: Contest<Broken>,
    /// Which of them is on, from 1; 0 is none.
    on: AtomicU8,
    /// Whether the other party is at it.
    at_it: AtomicBool,
    turns: AtomicU32,
}

impl Contests {
    pub const fn new() -> Self {
        const FULL: [u64; 2] = State::full(&QUOTA).to_words();
        const STATE: u64 = FULL[0];
        const HORIZON: u64 = FULL[1];
        const POOL: u64 = QUOTA.capacity() as u64;
        type Portable = portable_atomic::AtomicU64;
        Self {
            own: Contest::new(
                Words::new(DefaultWord::new(STATE), DefaultWord::new(HORIZON)),
                AtomicTokenBucket::over(DefaultWord::new(POOL), DefaultWord::new(POOL)),
            ),
            portable: Contest::new(
                Words::new(Portable::new(STATE), Portable::new(HORIZON)),
                AtomicTokenBucket::over(Portable::new(POOL), Portable::new(POOL)),
            ),
            broken: Contest::new(
                Words::new(Broken::new(STATE), Broken::new(HORIZON)),
                AtomicTokenBucket::over(Broken::new(POOL), Broken::new(POOL)),
            ),
            on: AtomicU8::new(0),
            at_it: AtomicBool::new(false),
            turns: AtomicU32::new(0),
        }
    }

    /// One turn of the other party: for an interrupt, or for another core again and again.
    pub fn interrupt(&self) {
        // Sequentially consistent, as is the other side: one of the two sees what the other has said.
        self.at_it.store(true, SeqCst);
        match self.on.load(SeqCst) {
            1 => self.own.others_turn(),
            2 => self.portable.others_turn(),
            3 => self.broken.others_turn(),
            _ => {}
        }
        // Now longer, now shorter, so that a timer's interrupts don't fall into step with the main program.
        let turns = self.turns.load(Relaxed).wrapping_add(1);
        self.turns.store(turns, Relaxed);
        for _ in 0..turns.wrapping_mul(0x9e37_79b9) >> 26 {
            in_between();
        }
        self.at_it.store(false, SeqCst);
    }

    /// Plays all of them.
    pub fn run(&self, report: &mut Report) {
        let own = self.play(1, &self.own);
        report.check(own.is_fair(), format_args!("a race: {own}"));
        let portable = self.play(2, &self.portable);
        report.check(portable.is_fair(), format_args!("a race over portable-atomic: {portable}"));
        let broken = self.play(3, &self.broken);
        report.check(!broken.adds_up().contains(&true), format_args!("a race over a broken word is noticed: {broken}"));
    }

    fn play<W: Word>(&self, number: u8, contest: &Contest<W>) -> Outcome {
        self.on.store(number, SeqCst);
        let mut outcome = Outcome { of_bucket: 0, of_pool: 0, calls: 0, others: 0, left: [0; 2] };
        // Twice the tokens, so that a broken word ends as well.
        while outcome.calls < 2 * u64::from(QUOTA.capacity()) && contest.turn(&mut outcome) {}
        // The other party ends its turn; then nobody takes.
        self.on.store(0, SeqCst);
        while self.at_it.load(SeqCst) {
            core::hint::spin_loop();
        }
        contest.close(&mut outcome);
        outcome
    }
}

impl Default for Contests {
    fn default() -> Self {
        Self::new()
    }
}

/// A bucket and a pool, and what the other party has of them. Only it counts, so that a load and a store suffice.
struct Contest<W> {
    bucket: TokenBucket<NoClock, Words<W>>,
    pool: AtomicTokenBucket<W>,
    of_bucket: AtomicU32,
    of_pool: AtomicU32,
    calls: AtomicU32,
}

impl<W: Word> Contest<W> {
    const fn new(words: Words<W>, pool: AtomicTokenBucket<W>) -> Self {
        Self {
            bucket: TokenBucket::over(QUOTA, words, NoClock),
            pool,
            of_bucket: AtomicU32::new(0),
            of_pool: AtomicU32::new(0),
            calls: AtomicU32::new(0),
        }
    }

    /// Takes three tokens, and gives one back; claims three, of which one goes back unspent.
    fn others_turn(&self) {
        let add = |counter: &AtomicU32, n| counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
        if self.bucket.try_acquire_at(0, 3).is_ok() {
            let back = u32::from(self.bucket.refund(1).is_ok());
            add(&self.of_bucket, 3 - back);
        }
        if let Some(mut permit) = self.pool.claim_permit(3) {
            let spent = u32::from(permit.spend(2).is_ok());
            add(&self.of_pool, 2 * spent);
        }
        add(&self.calls, 2);
    }

    /// Takes a token of the bucket, or else of the pool; returns whether either had one.
    fn turn(&self, outcome: &mut Outcome) -> bool {
        outcome.calls += 1;
        if self.bucket.try_acquire_at(0, 1).is_ok() {
            outcome.of_bucket += 1;
            true
        } else {
            let claimed = self.pool.claim(1).unwrap_or(0);
            outcome.of_pool += claimed;
            claimed > 0
        }
    }

    fn close(&self, outcome: &mut Outcome) {
        outcome.others = self.calls.load(Relaxed).into();
        outcome.of_bucket += u64::from(self.of_bucket.load(Relaxed));
        outcome.of_pool += u64::from(self.of_pool.load(Relaxed));
        outcome.left = [self.bucket.available_at(0).map_or(u64::MAX, u64::from), self.pool.available()];
    }
}

/// What was taken, by both, and what is left.
struct Outcome {
    of_bucket: u64,
    of_pool: u64,
    calls: u64,
    others: u64,
    left: [u64; 2],
}

impl Outcome {
    /// Whether the tokens of the bucket are all there, and those of the pool.
    fn adds_up(&self) -> [bool; 2] {
        let [of_bucket, of_pool] = self.left;
        let sums = [self.of_bucket.checked_add(of_bucket), self.of_pool.checked_add(of_pool)];
        sums.map(|sum| sum == Some(QUOTA.capacity().into()))
    }

    /// All tokens are there, and it was a contest.
    fn is_fair(&self) -> bool {
        self.adds_up() == [true; 2] && self.calls + self.others >= 1_000_000 && self.others >= 1000
    }
}

impl core::fmt::Display for Outcome {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { of_bucket, of_pool, calls, others, left } = self;
        let capacity = QUOTA.capacity();
        write!(f, "{calls} calls and {others} in between; {of_bucket} and {of_pool} tokens taken, ")?;
        write!(f, "{} and {} left, of {capacity} each", left[0], left[1])
    }
}

/// A word that is none: it compares and stores in two steps.
struct Broken([AtomicU32; 2]);

impl Broken {
    const fn new(value: u64) -> Self {
        Self([AtomicU32::new(value as u32), AtomicU32::new((value >> 32) as u32)])
    }
}

impl Word for Broken {
    fn load(&self, _: Ordering) -> u64 {
        let [low, high] = &self.0;
        u64::from(low.load(Relaxed)) | u64::from(high.load(Relaxed)) << 32
    }

    fn compare_exchange(&self, current: u64, new: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        let seen = self.load(Relaxed);
        if seen != current {
            return Err(seen);
        }
        in_between();
        let [low, high] = &self.0;
        low.store(new as u32, Relaxed);
        high.store((new >> 32) as u32, Relaxed);
        Ok(seen)
    }
}

/// A call, since an emulator lets interrupts in at branches alone.
#[inline(never)]
fn in_between() {
    core::hint::black_box(());
}
