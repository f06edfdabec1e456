//! What becomes of signals while the command waits, and while its child runs.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Signal, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// What a signal finds.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Nothing is taken: it ends this process, with 128 + its number.
    Waiting,
    /// The tokens are taken, and a child runs if there is one. SIGTERM and SIGHUP are passed on to it. SIGINT and
    /// SIGQUIT are not: a terminal sends them to both, and the child decides.
    Running(Option<OwnedFd>),
}

/// The phase, which a signal sees either before or after a change, and never between.
#[derive(Clone, Debug)]
pub(crate) struct Phases(Arc<Mutex<Phase>>);

impl Phases {
    /// Starts to wait; from here on signals are handled.
    pub(crate) fn start() -> io::Result<Self> {
        let phases = Self(Arc::new(Mutex::new(Phase::Waiting)));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
        let seen = phases.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                seen.receive(signal);
            }
        })?;
        Ok(phases)
    }

    /// Holds the phase: while the guard lives, no signal is acted upon.
    pub(crate) fn hold(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, signal: i32) {
        match &*self.hold() {
            // The guard is held until the process is gone, so that nothing can be taken any more.
            Phase::Waiting => std::process::exit(128 + signal),
            Phase::Running(Some(child)) => {
                let signal = match signal {
                    SIGTERM => Signal::TERM,
                    SIGHUP => Signal::HUP,
                    _ => return,
                };
                // It fails only for a child that has ended.
                let _ = pidfd_send_signal(child, signal);
            }
            Phase::Running(None) => {}
        }
    }
}
