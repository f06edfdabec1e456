//! `tollgate watch`.

mod history;
mod screen;
mod terminal;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;

use crate::args::Limits;
use crate::exit::Failure;
use crate::look::{Look, look_at_all};
use crate::seen::text_of;
use crate::watch::history::History;
use crate::watch::terminal::{Terminal, Wish};

/// The shortest time between two looks: more can't be seen.
const SHORTEST: Duration = Duration::from_millis(10);

/// Shows what is there and what is taken, until a key ends it; on what is no terminal, a JSON object for each look.
pub(crate) fn watch(limits: &Limits, every: Duration, as_json: bool) -> Result<ExitCode, Failure> {
    let every = every.max(SHORTEST);
    if as_json || !std::io::stdout().is_terminal() {
        return lines(limits, every);
    }
    let one = limits.file.len() + limits.name.len() == 1;
    let mut history = History::default();
    history.add(look_at_all(limits)?);
    let mut terminal = Terminal::new()?;
    loop {
        terminal.draw(|frame| if one { screen::one(frame, &history) } else { screen::all(frame, &history) })?;
        match terminal.wait(every)? {
            Wish::Look => history.add(look_at_all(limits)?),
            Wish::Draw => {}
            Wish::End(code) => return Ok(code.into()),
        }
    }
}

/// Prints a line for each look at each limit, until nobody reads them or a limit that was named is gone.
fn lines(limits: &Limits, every: Duration) -> Result<ExitCode, Failure> {
    let mut out = std::io::stdout();
    loop {
        for Look { path, seen } in look_at_all(limits)? {
            let object = match seen {
                Ok(seen) => seen.object(),
                Err(failure) => json!({ "file": text_of(&path), "error": failure.message }),
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
