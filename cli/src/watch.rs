//! `tollgate watch`.

mod history;
mod screen;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use serde_json::json;

use crate::args::Limits;
use crate::exit::Failure;
use crate::look::{Look, look_at_all};
use crate::watch::history::History;

/// Shows what is there and what is taken, until a key ends it; on what is no terminal, a JSON object for each look.
pub(crate) fn watch(limits: &Limits, every: Duration, as_json: bool) -> Result<ExitCode, Failure> {
    if as_json || !std::io::stdout().is_terminal() {
        return lines(limits, every);
    }
    let mut history = History::default();
    history.add(look_at_all(limits)?);
    let one = limits.file.len() + limits.name.len() == 1;
    let mut terminal = ratatui::try_init().map_err(|error| Failure::io("using the terminal", &error))?;
    let outcome = loop {
        let drawn =
            terminal.draw(|frame| if one { screen::one(frame, &history) } else { screen::all(frame, &history) });
        match drawn.and_then(|_| ended_within(every)) {
            Ok(false) => {}
            Ok(true) => break Ok(ExitCode::SUCCESS),
            Err(error) => break Err(Failure::io("using the terminal", &error)),
        }
        match look_at_all(limits) {
            Ok(looks) => history.add(looks),
            Err(failure) => break Err(failure),
        }
    };
    ratatui::restore();
    outcome
}

/// Prints a line for each look at each limit, until nobody reads them or a limit that was named is gone.
fn lines(limits: &Limits, every: Duration) -> Result<ExitCode, Failure> {
    let mut out = std::io::stdout();
    loop {
        for Look { path, seen } in look_at_all(limits)? {
            let object = match seen {
                Ok(seen) => seen.object(),
                Err(failure) => json!({ "file": path.to_string_lossy(), "error": failure.message }),
            };
            match writeln!(out, "{object}").and_then(|()| out.flush()) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
                Err(error) => return Err(Failure::io("writing", &error)),
            }
        }
        std::thread::sleep(every);
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
