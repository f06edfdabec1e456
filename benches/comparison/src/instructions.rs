//! How many instructions a call takes, counted by callgrind in runs of this program.

use std::process::Command;

use crate::limiters::{ENTRIES, Entry, Limiter, Setting};
use crate::speed::{NOTHING, PLENTY};

/// Instructions of a call that is granted, of one that is refused, and of a look.
#[derive(Clone, Copy)]
pub struct Instructions {
    pub grant: u64,
    pub refuse: u64,
    pub look: Option<u64>,
}

/// Counts for all, in the order of [`ENTRIES`]; `None` without valgrind.
pub fn measure() -> Option<Vec<Instructions>> {
    let each = |index: usize, kind: &str| {
        let (few, many) = (count(index, kind, 20_000)?, count(index, kind, 220_000)?);
        Some((many.saturating_sub(few) + 100_000) / 200_000)
    };
    (0..ENTRIES.len())
        .map(|index| {
            let has_look = (ENTRIES.get(index)?.make)(NOTHING).looks(1).is_some();
            Some(Instructions {
                grant: each(index, "grant")?,
                refuse: each(index, "refuse")?,
                look: if has_look { Some(each(index, "look")?) } else { None },
            })
        })
        .collect()
}

/// The instructions of a whole run.
fn count(index: usize, kind: &str, calls: u32) -> Option<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(std::env::current_exe().ok()?);
    command.args(["--count", &index.to_string(), "--kind", kind, "--calls", &calls.to_string()]);
    let said = String::from_utf8(command.output().ok()?.stderr).ok()?;
    let line = said.lines().find_map(|line| line.split_once("Collected : "))?;
    line.1.trim().parse().ok()
}

/// What a run under callgrind does.
pub fn run(index: usize, kind: &str, calls: u32) -> Option<()> {
    let make = |setting: Setting| -> Option<Box<dyn Limiter>> {
        let Entry { make, .. } = ENTRIES.get(index)?;
        Some(make(setting))
    };
    if kind == "grant" {
        let limiter = make(PLENTY)?;
        warm_up(&*limiter);
        limiter.takes(calls);
        return Some(());
    }
    let limiter = make(NOTHING)?;
    warm_up(&*limiter);
    if kind == "refuse" {
        limiter.takes(calls);
    } else {
        limiter.looks(calls);
    }
    Some(())
}

/// The fast clock needs some milliseconds, and two readings, to be one.
fn warm_up(limiter: &dyn Limiter) {
    limiter.take(1);
    std::thread::sleep(std::time::Duration::from_millis(30));
    limiter.take(1);
}
