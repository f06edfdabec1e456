//! `tollgate run` and `tollgate take`.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::MutexGuard;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tollgate::{SharedRateLimiter, acquire_all_holding};

use crate::args::Take;
use crate::exit::{Failure, refused};
use crate::limit::{Share, shares};
use crate::signals::{Phase, Phases};

/// Takes tokens, then runs a command, and exits as it does.
pub(crate) fn run(take: &Take, command: &[OsString]) -> Result<ExitCode, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("a command is missing"));
    };
    let shares = shares(take)?;
    let phases = start()?;
    let mut phase = acquire(&shares, take, &phases)?;
    let child = Command::new(program).args(arguments).spawn();
    let mut child = child.map_err(|error| {
        // Nothing ran: give the tokens back. Where even that fails, the limit is only stricter than it need be.
        for share in &shares {
            let _ = share.limiter.refund(share.cost);
        }
        Failure::command(&program.to_string_lossy(), &error)
    })?;
    *phase = Phase::Running(descriptor(&child));
    drop(phase);
    let status = child.wait().map_err(|error| Failure::io("waiting for the command", &error))?;
    Ok(code(status).into())
}

/// Takes tokens.
pub(crate) fn take(take: &Take) -> Result<ExitCode, Failure> {
    let shares = shares(take)?;
    let phases = start()?;
    // From here on a signal is too late to say that nothing was taken.
    *acquire(&shares, take, &phases)? = Phase::Running(None);
    Ok(ExitCode::SUCCESS)
}

fn start() -> Result<Phases, Failure> {
    Phases::start().map_err(|error| Failure::io("handling signals", &error))
}

/// Waits for the tokens. Signals are held from before they are taken: one that ends the process has taken nothing.
fn acquire<'a>(shares: &[Share], take: &Take, phases: &'a Phases) -> Result<MutexGuard<'a, Phase>, Failure> {
    let limits: Vec<(&SharedRateLimiter, u32)> = shares.iter().map(|share| (&share.limiter, share.cost)).collect();
    acquire_all_holding(&limits, take.timeout(), || phases.hold()).map_err(|refusal| {
        let path = shares.get(refusal.index).map_or(std::path::Path::new(""), |share| share.limiter.path());
        refused(path, &refusal.error, take.conflict_exit_code)
    })
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
