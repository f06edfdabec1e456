//! What `tollgate watch` draws.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Block, Gauge, Paragraph, RenderDirection, Row, Sparkline, Table};

use crate::seen::{Seen, name};
use crate::show::{columns, describe, mean_wait};
use crate::watch::history::{History, Limit};

/// The one limit that is watched.
pub(crate) fn one(frame: &mut Frame<'_>, history: &History) {
    let [limit] = history.limits() else { return };
    let seen = match &limit.seen {
        Ok(seen) => seen,
        Err(failure) => return frame.render_widget(Paragraph::new(&*failure.message), frame.area()),
    };
    let rows = [Constraint::Length(13), Constraint::Length(3)];
    let [top, gauge, levels, granted, refused] =
        Layout::vertical(rows.into_iter().chain([Constraint::Min(3); 3])).areas(frame.area());
    let [text, table] = Layout::horizontal([Constraint::Percentage(45), Constraint::Percentage(55)]).areas(top);
    frame.render_widget(Paragraph::new(describe(seen)).block(Block::bordered().title("limit (q ends)")), text);
    frame.render_widget(processes(seen), table);
    frame.render_widget(level(seen), gauge);
    plot(frame, levels, "level, newest at the right", &limit.levels, Some(seen.quota.capacity().into()));
    let pace = limit.pace;
    plot(frame, granted, &format!("granted: {:.1} tokens a second", pace.granted), &limit.granted, None);
    plot(frame, refused, &format!("refused: {:.1} calls a second", pace.refused), &limit.refused, None);
}

fn level(seen: &Seen) -> Gauge<'_> {
    let capacity = seen.quota.capacity();
    let part = (f64::from(seen.available) / f64::from(capacity)).clamp(0.0, 1.0);
    let label = format!("{} of {capacity}", seen.available);
    Gauge::default().block(Block::bordered().title("level")).label(label).ratio(part)
}

fn processes(seen: &Seen) -> Table<'_> {
    let widths = [8, 15, 12, 10, 8].map(Constraint::Max);
    let title = format!("processes: {}", seen.processes.len());
    Table::new(seen.processes.iter().map(|process| Row::new(columns(process))), widths)
        .header(header(["pid", "program", "granted", "refused", "idle"]))
        .block(Block::bordered().title(title))
}

fn plot(frame: &mut Frame<'_>, area: Rect, title: &str, samples: &VecDeque<u64>, max: Option<u64>) {
    let line = Sparkline::default().block(Block::bordered().title(title)).data(samples.iter().copied());
    let line = line.direction(RenderDirection::RightToLeft);
    frame.render_widget(max.into_iter().fold(line, Sparkline::max), area);
}

/// All limits, a line each.
pub(crate) fn all(frame: &mut Frame<'_>, history: &History) {
    let widths = [Constraint::Min(16)].into_iter().chain([12, 9, 9, 9, 9, 9].map(Constraint::Length));
    let title = format!("{} limits, the busiest first (q ends)", history.limits().len());
    let table = Table::new(history.busiest_first().into_iter().map(row), widths.chain([Constraint::Min(24)]))
        .header(header(["limit", "rate", "burst", "available", "granted/s", "refused/s", "processes", ""]))
        .block(Block::bordered().title(title));
    frame.render_widget(table, frame.area());
}

fn row(limit: &Limit) -> Row<'static> {
    let name = name(&limit.path);
    let seen = match &limit.seen {
        Ok(seen) => seen,
        Err(failure) => {
            let path = limit.path.display().to_string() + ": ";
            let message = failure.message.strip_prefix(&path).unwrap_or(&failure.message).to_owned();
            return Row::new([name].into_iter().chain(vec![String::new(); 6]).chain([message]));
        }
    };
    let note = if seen.paused.is_zero() {
        mean_wait(seen).map(|wait| format!("waits: {wait:?} on average"))
    } else {
        Some(format!("paused for {:.1?}", seen.paused))
    };
    Row::new([
        name,
        format!("{}/{:?}", seen.quota.tokens(), seen.quota.period()),
        seen.quota.capacity().to_string(),
        seen.available.to_string(),
        format!("{:.1}", limit.pace.granted),
        format!("{:.1}", limit.pace.refused),
        seen.processes.len().to_string(),
        note.unwrap_or_default(),
    ])
}

fn header<const N: usize>(names: [&str; N]) -> Row<'_> {
    Row::new(names).style(Style::new().add_modifier(Modifier::BOLD))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use tollgate::{AcquireError, Quota, SharedRateLimiter};

    use super::*;
    use crate::exit::{NOT_IN_TIME, refused};
    use crate::look::Look;

    fn drawn(draw: impl Fn(&mut Frame<'_>)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(120, 30)).unwrap();
        terminal.draw(|frame| draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    fn look(limiter: &SharedRateLimiter) -> Look {
        Look { path: limiter.path().to_owned(), seen: Ok(Seen::now(limiter).unwrap()) }
    }

    #[test]
    fn one_limit_with_its_processes() {
        let folder = tempfile::tempdir().unwrap();
        let limiter = SharedRateLimiter::create(folder.path().join("api"), Quota::per_hour(9).unwrap()).unwrap();
        let mut history = History::default();
        history.add(vec![look(&limiter)]);
        limiter.try_acquire(6).unwrap();
        assert!(limiter.try_acquire(4).is_err());
        history.add(vec![look(&limiter)]);
        let screen = drawn(|frame| one(frame, &history));
        let id = std::process::id().to_string();
        for text in ["9 per 3600s", "3 of 9", "6 granted, 0 refunded", "1 granted, 1 refused", "processes: 1", &id] {
            assert!(screen.contains(text), "{text}: {screen}");
        }
        let [limit] = history.limits() else { unreachable!() };
        assert_eq!((limit.granted[0], limit.refused[0], limit.levels[0]), (6, 1, 3));
    }

    #[test]
    fn all_limits_the_busiest_first() {
        let folder = tempfile::tempdir().unwrap();
        let create = |name| SharedRateLimiter::create(folder.path().join(name), Quota::per_hour(9).unwrap()).unwrap();
        let [idle, busy, paused] = ["an idle one", "a busy one", "a paused one"].map(create);
        let damaged = || {
            let path = folder.path().join("damaged");
            let seen = Err(refused(&path, &AcquireError::Damaged, NOT_IN_TIME));
            Look { path, seen }
        };
        let looks = || vec![look(&idle), damaged(), look(&busy), look(&paused)];
        let mut history = History::default();
        history.add(looks());
        busy.try_acquire(7).unwrap();
        paused.pause_for(Duration::from_secs(7200)).unwrap();
        history.add(looks());
        let screen = drawn(|frame| all(frame, &history));
        let at = |text: &str| screen.find(text).unwrap();
        assert!(at("4 limits") < at("a busy one") && at("a busy one") < at("a paused one"), "{screen}");
        assert!(at("a paused one") < at("an idle one") && at("an idle one") < at("damaged"), "{screen}");
        assert!(screen.contains("9/3600s") && screen.contains("paused for 7"), "{screen}");
        assert!(screen.contains("the file was damaged"), "{screen}");
        // One that goes and comes again counts anew.
        history.add(vec![look(&idle)]);
        history.add(looks());
        assert!(history.limits().iter().all(|limit| limit.granted.iter().take(1).all(|granted| *granted == 0)));
    }
}
