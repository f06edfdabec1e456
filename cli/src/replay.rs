//! `tollgate replay`: what a quota would have done with the requests of a log.

mod chart;
mod stamps;
mod verdict;

use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdin};
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use tollgate::Quota;

use crate::args::Replay;
use crate::exit::Failure;
use stamps::Requests;
use verdict::Verdict;

/// Reads the logs, and prints what the quota would have granted and refused.
pub(crate) fn replay(replay: &Replay) -> Result<ExitCode, Failure> {
    let quota = replay.rate.quota(replay.burst).map_err(|error| Failure::usage(error.to_string()))?;
    let mut requests = Requests::default();
    if replay.logs.is_empty() {
        read(&mut requests, "standard input", stdin().lock(), replay.skip)?;
    }
    for log in &replay.logs {
        let name = log.display().to_string();
        if log == Path::new("-") {
            read(&mut requests, "standard input", stdin().lock(), replay.skip)?;
        } else {
            let file = File::open(log).map_err(|error| Failure::input(&name, &error))?;
            read(&mut requests, &name, BufReader::new(file), replay.skip)?;
        }
    }
    requests.sort();
    let Some(span) = requests.span() else {
        return Err(Failure::data("there is no time stamp in what was read; give a log with one in each line"));
    };

    let verdict = Verdict::of(&quota, &requests.micros);
    if let Some(path) = &replay.svg {
        chart::draw(path, &quota, &requests, &verdict)
            .map_err(|error| Failure::creation(&path.display().to_string(), &*error))?;
    }
    let text = if replay.json {
        object(&quota, &requests, span, &verdict).to_string()
    } else {
        describe(&quota, &requests, span, &verdict)
    };
    let mut out = std::io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| Failure::io("writing", &error))?;
    Ok(ExitCode::SUCCESS)
}

fn read(requests: &mut Requests, name: &str, log: impl BufRead, skip: bool) -> Result<(), Failure> {
    for (number, line) in (1..).zip(log.split(b'\n')) {
        let line = line.map_err(|error| Failure::input(name, &error))?;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        match stamps::stamp(line) {
            Some(micros) => requests.micros.push(micros),
            None if line.is_empty() => {}
            None if skip => requests.skipped += 1,
            None => {
                let start: String = line.chars().take(60).collect();
                return Err(Failure::data(format!(
                    "{name}:{number}: no time stamp in {start:?}; expected RFC 3339, seconds since 1970, or the common log \
                     format; --skip leaves such lines out"
                )));
            }
        }
    }
    Ok(())
}

/// For people.
fn describe(quota: &Quota, requests: &Requests, (first, last): (i64, i64), verdict: &Verdict) -> String {
    let count = requests.micros.len();
    let share = 100.0 * verdict.refused as f64 / count as f64;
    let burst = match verdict.smallest_burst {
        Some(burst) => burst.to_string(),
        None => format!("none up to {}", u32::MAX),
    };
    let mut text = format!(
        "requests        {count}, from {} to {}\nrate            {} per {:?}\nburst           {}\ngranted         {}\n\
         refused         {} ({share:.2} %)\nlongest wait    {:?}, if each waits its turn instead\nsmallest burst  {burst}, to \
         refuse none at this rate",
        stamps::text(first),
        stamps::text(last),
        quota.tokens(),
        quota.period(),
        quota.capacity(),
        verdict.granted,
        verdict.refused,
        verdict.longest_wait,
    );
    if requests.skipped > 0 {
        text += &format!("\nskipped         {} lines without a time stamp", requests.skipped);
    }
    if requests.out_of_order > 0 {
        text += &format!("\nsorted          {} stamps were before the one above them", requests.out_of_order);
    }
    text
}

/// As a JSON object.
fn object(quota: &Quota, requests: &Requests, (first, last): (i64, i64), verdict: &Verdict) -> Value {
    json!({
        "requests": requests.micros.len(),
        "first_us": first,
        "last_us": last,
        "skipped": requests.skipped,
        "out_of_order": requests.out_of_order,
        "tokens": quota.tokens(),
        "period_ns": u64::try_from(quota.period().as_nanos()).unwrap_or(u64::MAX),
        "burst": quota.capacity(),
        "granted": verdict.granted,
        "refused": verdict.refused,
        "longest_wait_us": u64::try_from(verdict.longest_wait.as_micros()).unwrap_or(u64::MAX),
        "smallest_burst": verdict.smallest_burst,
    })
}
