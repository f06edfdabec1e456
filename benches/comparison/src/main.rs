//! Measures what a call costs and how exact it is, ours and the rivals', in one run, and writes the report.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "measurements, far from the limits"
)]

mod contention;
mod exactness;
mod instructions;
mod limiters;
mod report;
mod speed;
mod startup;

use std::path::PathBuf;

use clap::Parser;

/// Compares tollgate with other rate limiters, and writes RESULTS.md and its charts.
#[derive(Parser)]
struct Arguments {
    /// The folder for RESULTS.md and the charts
    #[arg(long, default_value = "benches")]
    out: PathBuf,
    /// How many times each figure is measured
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    #[arg(long, hide = true)]
    worker: Option<PathBuf>,
    #[arg(long, hide = true)]
    fast: bool,
    #[arg(long, hide = true)]
    count: Option<usize>,
    #[arg(long, hide = true, default_value = "grant")]
    kind: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    if let Some(path) = arguments.worker {
        contention::worker(&path, arguments.fast);
        return Ok(());
    }
    if let Some(index) = arguments.count {
        return instructions::run(index, &arguments.kind).ok_or("there is no such limiter".into());
    }
    eprintln!("what a call costs …");
    let speeds = speed::measure(arguments.rounds);
    eprintln!("several threads and processes …");
    let contention = contention::measure(arguments.rounds);
    eprintln!("how exact they are …");
    let exactness = exactness::measure();
    eprintln!("the command's start …");
    let start_up = startup::measure();
    eprintln!("instructions …");
    let instructions = instructions::measure();
    report::write(&arguments.out, &report::Measured { speeds, instructions, exactness, contention, start_up })
}
