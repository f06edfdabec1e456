//! How long `tollgate take` takes, from the start of the process to its end.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::speed::median;

/// Milliseconds of a run, and kilobytes of the program.
pub struct StartUp {
    pub take: f64,
    /// The same of true(1), which does nothing: what any process costs here.
    pub nothing: f64,
    pub kilobytes: u64,
}

/// `None` if the command was not built: `cargo build --release -p tollgate-cli`.
pub fn measure() -> Option<StartUp> {
    let tollgate = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/tollgate").canonicalize().ok()?;
    let folder = tempfile::tempdir().ok()?;
    let file = folder.path().join("limit").into_os_string().into_string().ok()?;
    let run = |program: &PathBuf, arguments: &[&str]| {
        let start = Instant::now();
        let ended = Command::new(program).args(arguments).stdout(Stdio::null()).status().ok()?;
        ended.success().then(|| start.elapsed().as_secs_f64() * 1e3)
    };
    let (mut take, mut nothing) = (vec![], vec![]);
    for _ in 0..=200 {
        take.push(run(&tollgate, &["take", "--file", &file, "--rate", "1000000/s"])?);
        nothing.push(run(&"true".into(), &[])?);
    }
    Some(StartUp { take: median(take), nothing: median(nothing), kilobytes: tollgate.metadata().ok()?.len() / 1024 })
}
