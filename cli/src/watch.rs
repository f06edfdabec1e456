//! `tollgate watch`.

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::widgets::{Block, Gauge, Paragraph, RenderDirection, Sparkline};
use tollgate::SharedRateLimiter;

use crate::args::Limit;
use crate::exit::{Failure, NOT_IN_TIME, refused};
use crate::limit::open;
use crate::show::{describe, object};

/// As many samples as any terminal is wide.
const SAMPLES: usize = 1000;

/// Shows the level and what is taken, until a key ends it; on what is no terminal, a JSON object for each sample.
pub(crate) fn watch(limit: &Limit, every: Duration) -> Result<ExitCode, Failure> {
    let limiter = open(limit)?;
    if !std::io::stdout().is_terminal() {
        return lines(&limiter, every);
    }
    let mut terminal = ratatui::try_init().map_err(|error| Failure::io("using the terminal", &error))?;
    let mut samples = Samples::default();
    let outcome = loop {
        if let Err(failure) = samples.add(&limiter) {
            break Err(failure);
        }
        let drawn = terminal.draw(|frame| draw(frame, &limiter, &samples));
        match drawn.and_then(|_| ended_within(every)) {
            Ok(false) => {}
            Ok(true) => break Ok(ExitCode::SUCCESS),
            Err(error) => break Err(Failure::io("using the terminal", &error)),
        }
    };
    ratatui::restore();
    outcome
}

/// Prints a line for each sample, until nobody reads them or the file is gone.
fn lines(limiter: &SharedRateLimiter, every: Duration) -> Result<ExitCode, Failure> {
    let mut out = std::io::stdout();
    loop {
        limiter.check_identity().map_err(|error| refused(limiter.path(), &error, NOT_IN_TIME))?;
        match writeln!(out, "{}", object(limiter)?).and_then(|()| out.flush()) {
            Ok(()) => std::thread::sleep(every),
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(Failure::io("writing", &error)),
        }
    }
}

/// Waits for a key; tells whether it is one that ends the program.
fn ended_within(time: Duration) -> std::io::Result<bool> {
    if !event::poll(time)? {
        return Ok(false);
    }
    Ok(match event::read()? {
        Event::Key(key) => {
            let control = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
            control || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
        }
        _ => false,
    })
}

/// The latest samples, the newest first.
#[derive(Debug, Default)]
struct Samples {
    /// The time of the newest, in microseconds.
    now: u64,
    levels: VecDeque<u64>,
    /// Tokens taken since the sample before, as far as the levels tell: what was taken of a full bucket, and accrued
    /// again, does not show.
    taken: VecDeque<u64>,
}

impl Samples {
    fn add(&mut self, limiter: &SharedRateLimiter) -> Result<(), Failure> {
        let failed = |error| refused(limiter.path(), &error, NOT_IN_TIME);
        limiter.check_identity().map_err(failed)?;
        let now = limiter.now_micros();
        let level = u64::from(limiter.available_at(now).map_err(failed)?);
        let before = self.levels.front().copied().unwrap_or(level);
        let quota = limiter.quota();
        let nanos = u128::from(now.saturating_sub(self.now)) * 1000;
        let accrued = if self.now == 0 { 0 } else { nanos * u128::from(quota.tokens()) / quota.period().as_nanos() };
        let there = (u128::from(before) + accrued).min(quota.capacity().into());
        let taken = u64::try_from(there).unwrap_or(u64::MAX).saturating_sub(level);
        self.now = now;
        for (samples, sample) in [(&mut self.levels, level), (&mut self.taken, taken)] {
            samples.push_front(sample);
            samples.truncate(SAMPLES);
        }
        Ok(())
    }
}

fn draw(frame: &mut Frame<'_>, limiter: &SharedRateLimiter, samples: &Samples) {
    let rows = [Constraint::Length(9), Constraint::Length(3), Constraint::Min(4), Constraint::Min(4)];
    let [text, gauge, levels, taken] = Layout::vertical(rows).areas(frame.area());
    let capacity = limiter.quota().capacity();
    let level = samples.levels.front().copied().unwrap_or(0);
    let about = describe(limiter).unwrap_or_else(|failure| failure.message);
    frame.render_widget(Paragraph::new(about).block(Block::bordered().title("limit (q ends)")), text);
    let bar = Gauge::default().block(Block::bordered().title("level")).label(format!("{level} of {capacity}"));
    #[allow(clippy::cast_precision_loss, reason = "a bar on the screen")]
    let part = (level as f64 / f64::from(capacity)).clamp(0.0, 1.0);
    frame.render_widget(bar.ratio(part), gauge);
    let plot = |samples: &VecDeque<u64>, title: &'static str| {
        let block = Block::bordered().title(title);
        Sparkline::default().block(block).data(samples.iter().copied()).direction(RenderDirection::RightToLeft)
    };
    frame.render_widget(plot(&samples.levels, "level, newest at the right").max(capacity.into()), levels);
    frame.render_widget(plot(&samples.taken, "taken"), taken);
}
