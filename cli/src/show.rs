//! `tollgate show`.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use tollgate::{Count, Process};

use crate::args::Limit;
use crate::exit::{Failure, NOT_IN_TIME, plain, print, refused};
use crate::limit::{open_to_look, path};
use crate::seen::{Seen, command, text_of};

/// Prints the quota, the level, the times to the next token and to a full bucket, and who has taken how much.
pub(crate) fn show(limit: &Limit, as_json: bool) -> Result<ExitCode, Failure> {
    let path = path(limit.file.as_deref(), limit.name.as_deref(), &limit.place)?;
    let limiter = open_to_look(&path, &limit.place)?;
    let seen = Seen::now(&limiter).map_err(|error| refused(&path, &error, NOT_IN_TIME))?;
    let text = if as_json { format!("{}\n", seen.object()) } else { describe(&seen) + &processes(&seen) };
    print(&text)
}

/// All but the processes, for people.
pub(crate) fn describe(seen: &Seen) -> String {
    let count = |count| seen.counts.get(count);
    // Writing to a string does not fail.
    let mut text = format!(
        "file        {}\nrate        {} per {:?}\nburst       {}\navailable   {}\nnext token  {}\nfull        {}\n",
        plain(&text_of(&seen.path)),
        seen.quota.tokens(),
        seen.quota.period(),
        seen.quota.capacity(),
        seen.available,
        after(seen.next),
        after(seen.full),
    );
    if !seen.paused.is_zero() {
        let _ = writeln!(text, "paused      for {:?}", seen.paused);
    }
    let (granted, refunded) = (count(Count::GrantedTokens), count(Count::RefundedTokens));
    let _ = writeln!(text, "tokens      {granted} granted, {refunded} refunded");
    let _ =
        writeln!(text, "calls       {} granted, {} refused", count(Count::GrantedCalls), count(Count::RefusedCalls));
    if let Some(waits) = waits(seen) {
        let _ = writeln!(text, "waited      {waits}");
    }
    let (ok, overload) = (count(Count::Ok), count(Count::Overload));
    if ok > 0 || overload > 0 {
        let _ = writeln!(text, "reported    {ok} ok, {overload} overload");
    }
    text
}

/// The processes, a line each.
fn processes(seen: &Seen) -> String {
    let mut text = format!("processes   {}\n", seen.processes.len());
    for process in &seen.processes {
        let [id, program, granted, refused, idle] = columns(process);
        let _ = writeln!(text, "  {id:>8} {program:<15} granted {granted}, refused {refused}, idle {idle}");
    }
    text
}

/// What there is to say of a process.
pub(crate) fn columns(process: &Process) -> [String; 5] {
    let unknown = || "?".to_owned();
    [
        process.id.map_or_else(unknown, |id| id.to_string()),
        command(process).unwrap_or_else(unknown),
        process.counts.get(Count::GrantedTokens).to_string(),
        process.counts.get(Count::RefusedCalls).to_string(),
        format!("{:?}", rounded(process.idle)),
    ]
}

/// How long calls waited; `None` if nobody says.
fn waits(seen: &Seen) -> Option<String> {
    let mean = mean_wait(seen)?;
    let longest = seen.waits.classes().filter(|(calls, _)| *calls > 0).last()?.1.map(Duration::from_micros);
    let longest = longest.map_or_else(|| "some over an hour".to_owned(), |bound| format!("all under {bound:?}"));
    Some(format!("{mean:?} on average, {longest}"))
}

/// How long calls waited on average that wait at all.
pub(crate) fn mean_wait(seen: &Seen) -> Option<Duration> {
    let calls = seen.waits.classes().fold(0_u64, |sum, (calls, _)| sum.saturating_add(calls));
    let micros = seen.counts.get(Count::WaitedMicros).checked_div(calls)?;
    Some(rounded(Duration::from_micros(micros)))
}

/// To three digits or so.
fn rounded(time: Duration) -> Duration {
    match time.as_micros() {
        0..10_000 => time,
        10_000..10_000_000 => Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        _ => Duration::from_secs(time.as_secs()),
    }
}

fn after(wait: Duration) -> String {
    if wait.is_zero() { "now".to_owned() } else { format!("in {wait:?}") }
}
