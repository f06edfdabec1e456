//! What was seen at the latest looks.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate::Count;

use crate::exit::Failure;
use crate::look::Look;
use crate::seen::Seen;

/// As many samples as any terminal is wide.
const SAMPLES: usize = 1000;

/// Limits, in the order of the last look.
#[derive(Debug, Default)]
pub(crate) struct History(Vec<Limit>);

/// A limit, as it was seen again and again.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) path: PathBuf,
    pub(crate) seen: Result<Seen, Failure>,
    pub(crate) pace: Pace,
    /// The newest first, all of them.
    pub(crate) levels: VecDeque<u64>,
    pub(crate) granted: VecDeque<u64>,
    pub(crate) refused: VecDeque<u64>,
}

/// What happened in a second, between the last two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pace {
    /// Tokens.
    pub(crate) granted: f64,
    /// Calls.
    pub(crate) refused: f64,
}

impl History {
    /// Adds a look at all that are there now.
    pub(crate) fn add(&mut self, looks: Vec<Look>) {
        let mut before = std::mem::take(&mut self.0);
        self.0 = looks.into_iter().map(|look| Limit::new(take(&mut before, &look.path), look)).collect();
    }

    pub(crate) fn limits(&self) -> &[Limit] {
        &self.0
    }

    /// Those that grant most come first, as in top(1); then by name.
    pub(crate) fn busiest_first(&self) -> Vec<&Limit> {
        let mut limits: Vec<_> = self.0.iter().collect();
        limits.sort_by(|one, two| two.pace.granted.total_cmp(&one.pace.granted).then_with(|| one.path.cmp(&two.path)));
        limits
    }
}

fn take(limits: &mut Vec<Limit>, path: &Path) -> Option<Limit> {
    let at = limits.iter().position(|limit| limit.path == path)?;
    Some(limits.swap_remove(at))
}

impl Limit {
    fn new(before: Option<Self>, look: Look) -> Self {
        let Look { path, seen } = look;
        let (earlier, [mut levels, mut granted, mut refused]) = match before {
            Some(limit) => (limit.seen.ok(), [limit.levels, limit.granted, limit.refused]),
            None => (None, Default::default()),
        };
        let mut pace = Pace::default();
        if let Ok(seen) = &seen {
            let since = |count| since(earlier.as_ref(), seen, count);
            let (tokens, calls) = (since(Count::GrantedTokens), since(Count::RefusedCalls));
            let elapsed = seen.at.saturating_sub(earlier.as_ref().map_or(0, |earlier| earlier.at));
            pace = Pace { granted: a_second(tokens, elapsed), refused: a_second(calls, elapsed) };
            for (samples, sample) in
                [(&mut levels, seen.available.into()), (&mut granted, tokens), (&mut refused, calls)]
            {
                samples.push_front(sample);
                samples.truncate(SAMPLES);
            }
        }
        Self { path, seen, pace, levels, granted, refused }
    }
}

/// How much was counted between two looks: nothing if there was no earlier one; and if the file is another by now,
/// all that was counted in it.
fn since(earlier: Option<&Seen>, seen: &Seen, count: Count) -> u64 {
    let now = seen.counts.get(count);
    earlier.map_or(0, |earlier| now.checked_sub(earlier.counts.get(count)).unwrap_or(now))
}

#[allow(clippy::cast_precision_loss, reason = "shown to three digits or so")]
fn a_second(n: u64, micros: u64) -> f64 {
    if micros == 0 { 0.0 } else { n as f64 / Duration::from_micros(micros).as_secs_f64() }
}
