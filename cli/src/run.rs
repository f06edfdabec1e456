//! `tollgate run` and `tollgate take`.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::MutexGuard;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tollgate::{SharedRateLimiter, retry_for};

use crate::args::Cost;
use crate::exit::{Failure, refused};
use crate::limit::limiter;
use crate::signals::{Phase, Phases};

/// Takes tokens, then runs a command, and exits as it does.
pub(crate) fn run(take: &Cost, command: &[OsString]) -> Result<ExitCode, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("a command is missing"));
    };
    let limiter = limiter(take)?;
    let phases = start()?;
    let mut phase = acquire(&limiter, take, &phases)?;
    let child = Command::new(program).args(arguments).spawn();
    let mut child = child.map_err(|error| {
        // Nothing ran: give the tokens back. Where even that fails, the limit is only stricter than it need be.
        let _ = limiter.refund(take.cost);
        Failure::command(&program.to_string_lossy(), &error)
    })?;
    *phase = Phase::Running(descriptor(&child));
    drop(phase);
    let status = child.wait().map_err(|error| Failure::io("waiting for the command", &error))?;
    Ok(code(status).into())
}

/// Takes tokens.
pub(crate) fn take(take: &Cost) -> Result<ExitCode, Failure> {
    let limiter = limiter(take)?;
    let phases = start()?;
    // From here on a signal is too late to say that nothing was taken.
    *acquire(&limiter, take, &phases)? = Phase::Running(None);
    Ok(ExitCode::SUCCESS)
}

fn start() -> Result<Phases, Failure> {
    Phases::start().map_err(|error| Failure::io("handling signals", &error))
}

/// Waits for the tokens. Signals are held from before they are taken: one that ends the process has taken nothing.
fn acquire<'a>(limiter: &SharedRateLimiter, take: &Cost, phases: &'a Phases) -> Result<MutexGuard<'a, Phase>, Failure> {
    let attempt = || {
        let phase = phases.hold();
        limiter.try_acquire(take.cost).map(|_| phase)
    };
    retry_for(take.timeout(), attempt).map_err(|error| refused(&take.limit.file, &error, take.conflict_exit_code))
}

/// A handle on the child that can't come to mean another process; `None` on a kernel that has none (before 5.3).
fn descriptor(child: &Child) -> Option<std::os::fd::OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// The exit code of a child, as a shell gives it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}
