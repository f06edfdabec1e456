//! How many instructions a call takes, counted by callgrind in runs of this program.

use std::process::Command;

use tollgate_benches::warm_up_the_fast_clock;

use crate::limiters::{ENTRIES, Entry, Limiter};
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
    (0..ENTRIES.len())
        .map(|index| {
            let has_look = (ENTRIES.get(index)?.make)(NOTHING).looks(1).is_some();
            Some(Instructions {
                grant: per_call(index, "grant")?,
                refuse: per_call(index, "refuse")?,
                look: if has_look { Some(per_call(index, "look")?) } else { None },
            })
        })
        .collect()
}

const CALLS: u32 = 100_000;

fn per_call(index: usize, kind: &str) -> Option<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*instructions::collected*"]);
    command.arg(std::env::current_exe().ok()?).args(["--count", &index.to_string(), "--kind", kind]);
    let said = String::from_utf8(command.output().ok()?.stderr).ok()?;
    let (_, collected) = said.lines().find_map(|line| line.split_once("Collected : "))?;
    let collected: u64 = collected.trim().parse().ok()?;
    (collected > 0).then_some((collected + u64::from(CALLS / 2)) / u64::from(CALLS))
}

/// What a run under callgrind does.
pub fn run(index: usize, kind: &str) -> Option<()> {
    let Entry { make, .. } = ENTRIES.get(index)?;
    let limiter = make(if kind == "grant" { PLENTY } else { NOTHING });
    warm_up_the_fast_clock();
    limiter.take(1);
    collected(&*limiter, kind == "look");
    Some(())
}

/// What is counted.
#[inline(never)]
fn collected(limiter: &dyn Limiter, looks: bool) {
    if looks {
        limiter.looks(CALLS);
    } else {
        limiter.takes(CALLS);
    }
}
