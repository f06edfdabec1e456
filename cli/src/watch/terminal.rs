//! The terminal while `tollgate watch` has it: when that ends, by a key, a signal or an error, it is as before.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Failure;

/// How long a signal, or the end of the terminal, may go unnoticed.
const SLICE: Duration = Duration::from_millis(100);

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The time is over: look again.
    Look,
    /// The terminal has another size.
    Draw,
    /// A key or a signal: end with this code.
    End(u8),
}

/// A terminal in raw mode, until it is dropped.
pub(crate) struct Terminal {
    terminal: DefaultTerminal,
    /// The one that ends the process, or 0.
    signal: Arc<AtomicI32>,
    /// When the next look is due.
    due: Option<Instant>,
}

impl Terminal {
    pub(crate) fn new() -> Result<Self, Failure> {
        // Before the terminal is changed: from here on, they come to `wait`.
        let signal = ending_signals().map_err(|error| Failure::io("handling signals", &error))?;
        let terminal = ratatui::try_init().map_err(|error| {
            // Some of it may have been done.
            let _ = ratatui::try_restore();
            failed(&error)
        });
        Ok(Self { terminal: terminal?, signal, due: None })
    }

    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        let drawn = self.terminal.draw(draw).map(|_| ());
        drawn.map_err(|error| {
            let _ = exit_if_hung_up(Duration::ZERO);
            failed(&error)
        })
    }

    /// Waits for the time of the next look, or for an event that ends it or asks for another picture.
    pub(crate) fn wait(&mut self, every: Duration) -> Result<Wish, Failure> {
        self.wish(every).map_err(|error| failed(&error))
    }

    fn wish(&mut self, every: Duration) -> io::Result<Wish> {
        #[allow(clippy::disallowed_methods, reason = "a pause between two pictures")]
        let now = Instant::now;
        // A time too far away to be told never comes.
        let due = self.due.or_else(|| now().checked_add(every));
        self.due = due;
        loop {
            if let Ok(signal @ 1..) = u8::try_from(self.signal.load(Relaxed)) {
                exit_if_hung_up(Duration::ZERO)?;
                return Ok(Wish::End(128 + signal));
            }
            let left = due.map_or(SLICE, |due| due.saturating_duration_since(now()));
            if left.is_zero() {
                self.due = None;
                return Ok(Wish::Look);
            }
            // First what has been read before; and nothing is read of a terminal that is not there any more, which never ends.
            if !event::poll(Duration::ZERO)? {
                exit_if_hung_up(left.min(SLICE))?;
                continue;
            }
            match event::read()? {
                Event::Key(key) if ends(key.code, key.modifiers) => return Ok(Wish::End(0)),
                Event::Resize(..) => return Ok(Wish::Draw),
                _ => {}
            }
        }
    }
}

/// Notes a signal that ends the process; and ends it, if nobody does within a second: the terminal may take no more output.
fn ending_signals() -> io::Result<Arc<AtomicI32>> {
    let noted = Arc::new(AtomicI32::new(0));
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
    let signal = noted.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(number) = signals.forever().next() {
            signal.store(number, Relaxed);
            std::thread::sleep(Duration::from_secs(1));
            std::process::exit(128 + number);
        }
    })?;
    Ok(noted)
}

fn failed(error: &io::Error) -> Failure {
    Failure::io("using the terminal", error)
}

fn ends(key: KeyCode, modifiers: KeyModifiers) -> bool {
    let control = modifiers.contains(KeyModifiers::CONTROL) && key == KeyCode::Char('c');
    control || matches!(key, KeyCode::Char('q') | KeyCode::Esc)
}

/// Waits until there is something to read; and ends the process if there is no terminal any more: there is nothing to restore, and
/// nowhere to say anything. SIGHUP says so as well, unless it is ignored.
fn exit_if_hung_up(time: Duration) -> io::Result<()> {
    let output = io::stdout();
    let mut polled = [PollFd::new(&output, PollFlags::IN)];
    let time = Timespec::try_from(time).map_err(io::Error::other)?;
    match poll(&mut polled, Some(&time)) {
        // A signal, perhaps that of another size.
        Err(Errno::INTR) => return Ok(()),
        outcome => outcome?,
    };
    if polled.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR)) {
        std::process::exit(128 + SIGHUP);
    }
    Ok(())
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It fails where there is no terminal any more.
        let _ = ratatui::try_restore();
    }
}
