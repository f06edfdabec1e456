#!/usr/bin/env python3
"""Proves properties of the fixed-width arithmetic of core/src/state.rs and core/src/tick.rs for all inputs, with z3.

Needs the package z3-solver. Each property is stated as its negation, which must have no solution; then the arithmetic is
broken, and the same negation must have one.

The model is that of State::refill_to, Scale::ticks, Scale::tokens, State::wait and State::unpack_alone, in 64-bit words as
Rust computes them: a shift, a comparison, an addition. What it takes for granted is what Scale::finest ensures: up <= 29, down
<= 54, one of them 0, and that the bucket fills in 2^29 ticks unless up is 0.
"""

import sys

from z3 import And, BitVec, BitVecVal, Extract, If, Implies, LShR, Not, Or, Solver, UGE, UGT, ULE, ULT, ZeroExt, sat, unsat

FILL_TICKS = 1 << 29
WINDOW = 15 << 28


def word(name):
    return BitVec(name, 64)


def const(value):
    return BitVecVal(value, 64)


capacity, tokens, last, tick, up, down, n = map(word, "capacity tokens last tick up down n".split())


def ticks(count):
    """Scale::ticks: rounded up."""
    return LShR((count << up) + ((const(1) << down) - 1), down)


def accrued(elapsed):
    """Scale::tokens: the tokens, rounded down, and the ticks that they take."""
    whole = LShR(elapsed, up)
    most = LShR(const(1 << 62), down)
    clamped = If(ULT(elapsed, most), elapsed, most)
    return If(down == 0, whole, clamped << down), If(down == 0, whole << up, elapsed)


RANGES = And(
    UGE(capacity, 1),
    ULT(capacity, 1 << 32),
    ULE(tokens, capacity),
    ULT(last, 1 << 63),
    ULT(tick, 1 << 63),
    ULE(up, 29),
    ULE(down, 54),
    Or(up == 0, down == 0),
    Or(up == 0, ULE(capacity << up, FILL_TICKS)),
)


class Refill:
    """State::refill_to at `at`: whether it is full, else the tokens and the stamp."""

    def __init__(self, at, mutant=None):
        elapsed = at - last
        gained, taken = accrued(elapsed)
        level = gained + tokens
        self.back = ULT(at, last)
        reached = UGT(level, capacity + 1) if mutant == "late" else UGE(level, capacity)
        if mutant == "back":
            self.back = ULT(at, last - 1)
        self.full = And(Not(self.back), reached)
        self.tokens = If(self.back, tokens, If(self.full, capacity, level))
        kept = {"drops": elapsed, "ahead": taken + (const(1) << up)}.get(mutant, taken)
        self.last = If(self.back, last, last + kept)


def never_above_capacity(mutant):
    """Refilled, the bucket holds no fewer tokens than before and no more than its capacity; the 32-bit field holds them."""
    after = Refill(tick, mutant)
    return And(ULE(after.tokens, capacity), UGE(after.tokens, tokens))


def back_changes_nothing(mutant):
    """A time before the last refill changes nothing."""
    after = Refill(tick, mutant)
    return Implies(ULT(tick, last), And(after.tokens == tokens, after.last == last, Not(after.full)))


def stamp_stays_behind(mutant):
    """The stamp never falls, never passes the time, and stays less than a token behind it."""
    after = Refill(tick, mutant)
    token = const(1) << up
    behind = tick - after.last
    return Implies(
        And(UGE(tick, last), Not(after.full)),
        And(UGE(after.last, last), ULE(after.last, tick), ULT(behind, token)),
    )


def nothing_dropped(mutant):
    """Tokens and the time that the stamp keeps add up to the time that has passed: (tokens' − tokens)·2^up = (last' − last)·2^down."""
    after = Refill(tick, mutant)
    gained = after.tokens - tokens
    return Implies(And(UGE(tick, last), Not(after.full)), (gained << up) == ((after.last - last) << down))


def wait_is_minimal(mutant):
    """At the tick that State::wait names, n tokens are there; at the tick before, they are not."""
    due = last + ticks(n - tokens)
    if mutant == "wait":
        due = due + 1
    wanted = And(ULE(n, capacity), UGT(n, tokens))
    return Implies(wanted, And(UGE(Refill(due, mutant).tokens, n), ULT(Refill(due - 1, mutant).tokens, n)))


def one_word_never_credits_more(mutant):
    """A stamp of 32 bits without a horizon is never taken for one that is longer ago than it is."""
    since = ZeroExt(32, Extract(31, 0, tick) - Extract(31, 0, last))
    window = const(1 << 32) if mutant == "window" else const(WINDOW)
    read = If(ULT(since, window), tick - since, tick + ((1 << 32) - since))
    return And(
        # Credited: at most the time that has passed.
        Implies(ULE(last, tick), Or(UGT(read, tick), ULE(tick - read, tick - last))),
        # By a clock that is less than a sixteenth of a turn behind: nothing.
        Implies(And(UGT(last, tick), ULT(last - tick, 1 << 28)), read == last),
    )


# Each property with a mutant that must break it.
PROPERTIES = [
    (never_above_capacity, "late"),
    (back_changes_nothing, "back"),
    (stamp_stays_behind, "ahead"),
    (nothing_dropped, "drops"),
    (wait_is_minimal, "wait"),
    (one_word_never_credits_more, "window"),
]


def counterexample(property_, mutant):
    solver = Solver()
    solver.set("timeout", 600_000)
    solver.add(RANGES, Not(property_(mutant)))
    return solver.check()


def main():
    failed = 0
    for property_, mutant in PROPERTIES:
        proof = counterexample(property_, None)
        control = counterexample(property_, mutant)
        good = proof == unsat and control == sat
        failed += not good
        verdict = "proved" if proof == unsat else f"NOT PROVED ({proof})"
        broken = "refuted" if control == sat else f"NOT REFUTED ({control})"
        print(f"{property_.__name__}: {verdict}; with the mutant '{mutant}': {broken}", flush=True)
    print(f"{len(PROPERTIES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
