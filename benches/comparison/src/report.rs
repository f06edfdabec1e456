//! RESULTS.md and its charts.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::contention::{Contention, LEASE, PROCESSES, WORKERS};
use crate::exactness::Exactness;
use crate::instructions::Instructions;
use crate::limiters::{FAST, FILE, GOVERNOR, MUTEX, PARKING_LOT};
use crate::speed::{Speed, Speeds};
use crate::startup::StartUp;

pub struct Measured {
    pub speeds: Speeds,
    pub instructions: Option<Vec<Instructions>>,
    pub exactness: Vec<Exactness>,
    pub contention: Vec<Contention>,
    pub start_up: Option<StartUp>,
}

pub fn write(out: &Path, measured: &Measured) -> Result<(), Box<dyn Error>> {
    let text = text(measured)?;
    print!("{text}");
    std::fs::create_dir_all(out.join("charts"))?;
    std::fs::write(out.join("RESULTS.md"), text)?;
    calls_chart(&out.join("charts/calls.svg"), &measured.speeds)?;
    threads_chart(&out.join("charts/threads.svg"), &measured.contention)?;
    Ok(())
}

fn text(measured: &Measured) -> Result<String, Box<dyn Error>> {
    let Measured { speeds, instructions, exactness, contention, start_up } = measured;
    let mut text = String::new();
    writeln!(text, "# Results\n")?;
    writeln!(text, "Written by `benches/compare` on {}, on {}.\n", jiff::Zoned::now().strftime("%Y-%m-%d"), machine())?;
    text.push_str(
        "All figures are of one run: compare them with each other, and with no other run's. Times are medians of interleaved rounds, in nanoseconds, on a machine \
         that others use as well; instructions are counted by callgrind. Everything is built with link-time optimisation, which rivals whose calls are not \
         marked `#[inline]` need.\n\n",
    );

    text.push_str("# One thread\n\n![What a call costs](charts/calls.svg)\n\n");
    text.push_str("| limiter | clock | grant | ÷ ours | refuse | ÷ ours | look | instructions: grant, refuse, look |\n|---|---|--:|--:|--:|--:|--:|---|\n");
    let ours = speeds.of(FAST, "FastClock");
    for (index, speed) in speeds.calls.iter().enumerate() {
        let Speed { entry, grant, refuse, look } = speed;
        let look = look.map_or("–".to_owned(), |look| format!("{look:.1}"));
        let counted = instructions.as_ref().and_then(|all| all.get(index)).map_or(String::new(), |counted| {
            let look = counted.look.map_or("–".to_owned(), |look| look.to_string());
            format!("{}, {}, {look}", counted.grant, counted.refuse)
        });
        writeln!(
            text,
            "| {} | {} | {grant:.1} | {:.2} | {refuse:.1} | {:.2} | {look} | {counted} |",
            entry.name,
            entry.clock,
            grant / ours.grant,
            refuse / ours.refuse
        )?;
    }
    writeln!(text, "\nA token of a lease of a thousand, its share of taking them included: {:.2} ns.", speeds.lease)?;
    text.push_str(
        "A look of half a nanosecond reads a level that nobody has refilled. Under callgrind some rivals' clocks are others than without: their counts are of what they run there.\n\n",
    );

    text.push_str("# How exact\n\n");
    text.push_str(
        "By each limiter's own clock, beside its speed above: tokens that it granted above burst + rate × time when it was taken from after idle time; and how far off its rate it was when it \
         was asked again and again (800 000/s), at intervals of almost two tokens' time (1000/s each 1.99 ms), at a slow rate often (1/s each 1.95 µs), and a thousand tokens at a time at \
         400 000 000/s. Of each the best of two or three attempts, since a busy machine adds errors of its own.\n\n",
    );
    text.push_str("| limiter | clock | over | again and again | at intervals | slow, often | fast | exact |\n|---|---|--:|--:|--:|--:|--:|---|\n");
    for of in exactness {
        let Exactness { entry, over, hammered, polled, slow, fast } = of;
        let percent = |off: &f64| if off.abs() < 0.05 { "0".to_owned() } else { format!("{off:+.1} %") };
        writeln!(
            text,
            "| {} | {} | {over:.0} | {} | {} | {} | {} | {} |",
            entry.name,
            entry.clock,
            percent(hammered),
            percent(polled),
            percent(slow),
            percent(fast),
            if of.is_exact() { "yes" } else { "no" }
        )?;
    }

    writeln!(text, "\n{}", exact_rivals(speeds, exactness))?;

    text.push_str("\n# Several threads and processes on one bucket\n\n![Calls a second](charts/threads.svg)\n\n");
    text.push_str("Millions of calls a second, of all together.\n\n| limiter | clock | calls |");
    for workers in WORKERS {
        write!(text, " {workers} |")?;
    }
    text.push_str("\n|---|---|---|--:|--:|--:|--:|\n");
    for Contention { name, granted, clock, rates } in contention {
        write!(text, "| {name} | {clock} | {} |", if *granted { "granted" } else { "refused" })?;
        for rate in rates {
            write!(text, " {rate:.1} |")?;
        }
        text.push('\n');
    }

    text.push_str("\n# What was asked for\n\n| | measured | wanted |\n|---|--:|--:|\n");
    for (what, ratio, wanted) in ratios(speeds, contention) {
        writeln!(text, "| {what} | {ratio:.2} | {wanted} |")?;
    }

    if let Some(StartUp { take, nothing, kilobytes }) = start_up {
        writeln!(text, "\n# The command\n")?;
        writeln!(
            text,
            "`tollgate take` from start to end: {take:.2} ms in the median of 200; true(1), which does nothing, {nothing:.2} ms. The program has {kilobytes} kB."
        )?;
    }

    text.push_str("\nWhat watching and steering a limit cost: [STEERING.md](STEERING.md).\n");
    text.push_str("\n# Who is not here\n\nsubetha-cxc, which keeps its bucket in a mapped file as well, needs a newer Rust than 1.95.\n");
    Ok(text)
}

/// Where those stand that are exact as well, by a clock of the kernel's like theirs.
fn exact_rivals(speeds: &Speeds, exactness: &[Exactness]) -> String {
    let kernel = speeds.of(FAST, "kernel");
    let rivals = exactness.iter().zip(&speeds.calls);
    let rivals = rivals.filter(|(of, _)| of.is_exact() && of.entry.clock == "std Instant" && of.entry.name != MUTEX);
    let stand = rivals.map(|(of, speed)| {
        let (grant, refuse) = (speed.grant / kernel.grant, speed.refuse / kernel.refuse);
        format!("{} takes {grant:.2} of our time for a grant, and {refuse:.2} for a refusal", of.entry.name)
    });
    let stand: Vec<String> = stand.collect();
    format!(
        "Exact as well, each by a clock of the kernel's: {}.",
        if stand.is_empty() { "none".to_owned() } else { stand.join("; ") }
    )
}

/// What the project asks of itself, from the figures of this run.
fn ratios(speeds: &Speeds, contention: &[Contention]) -> Vec<(&'static str, f64, &'static str)> {
    let fast = speeds.of(FAST, "FastClock");
    let file = speeds.of(FILE, "FastClock");
    let kernel = speeds.of(FAST, "kernel");
    let governor = speeds.of(GOVERNOR, "quanta");
    let (mutex, std) = (speeds.of(MUTEX, "kernel"), speeds.of(MUTEX, "std Instant"));
    let parking_lot = speeds.of(PARKING_LOT, "kernel");
    let rate = |name: &str, clock: &str, workers: usize| {
        let found = contention.iter().find(|of| of.granted && of.name == name && of.clock == clock);
        found.and_then(|of| of.rates.get(workers).copied()).unwrap_or(f64::NAN)
    };
    let lease = |workers| rate(LEASE, "FastClock", workers);
    let look = |speed: &Speed| speed.look.unwrap_or(f64::NAN);
    vec![
        ("grant ÷ governor's", fast.grant / governor.grant, "≤ 1.05"),
        ("grant in a file ÷ governor's", file.grant / governor.grant, "≤ 1.10"),
        ("refuse ÷ governor's", fast.refuse / governor.refuse, "≤ 1.05"),
        ("look ÷ governor's refuse", look(fast) / governor.refuse, "≤ 1.05"),
        ("grant, kernel clock ÷ the same in a std Mutex", kernel.grant / mutex.grant, "≤ 1.00"),
        ("grant, kernel clock ÷ the same in a parking_lot Mutex", kernel.grant / parking_lot.grant, "≤ 1.00"),
        (
            "two threads, kernel clock ÷ the same in a std Mutex, calls a second",
            rate(FAST, "kernel", 1) / rate(MUTEX, "kernel", 1),
            "≥ 2",
        ),
        ("Mutex by std Instant ÷ grant", std.grant / fast.grant, "≥ 3"),
        ("Mutex by std Instant ÷ refuse", std.refuse / fast.refuse, "≥ 3"),
        ("Mutex by std Instant ÷ look", look(std) / look(fast), "≥ 3"),
        ("a token of a lease ÷ governor's grant", speeds.lease / governor.grant, "≤ 0.2"),
        ("leases, two threads ÷ one, tokens a second", lease(1) / lease(0), "≥ 1.8"),
        (
            "two processes on one file ÷ two threads on one bucket, calls a second",
            rate(PROCESSES, "FastClock", 1) / rate(FAST, "FastClock", 1),
            "≥ 0.9",
        ),
    ]
}

/// The processor, how many of it, and the kernel.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |line| line.1);
    let kernel = read("/proc/sys/kernel/osrelease");
    let release = kernel.split('-').next().unwrap_or("?").trim();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} processors ({model}), Linux {release}")
}

fn calls_chart(path: &Path, speeds: &Speeds) -> Result<(), Box<dyn Error>> {
    let rows = speeds.calls.len();
    let most = speeds.calls.iter().map(|speed| speed.grant.max(speed.refuse)).fold(0.0, f64::max);
    let root = SVGBackend::new(path, (900, 60 + 34 * u32::try_from(rows)?)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("Nanoseconds for a call, one thread", ("sans-serif", 18))
        .margin(10)
        .y_label_area_size(300)
        .x_label_area_size(30)
        .build_cartesian_2d(0.0..most * 1.05, 0.0..rows as f64)?;
    let label = |y: &f64| {
        let row = speeds.calls.iter().rev().nth(*y as usize);
        row.map_or(String::new(), |speed| format!("{} ({})", speed.entry.name, speed.entry.clock))
    };
    chart.configure_mesh().disable_mesh().y_labels(0).x_desc("ns").draw()?;
    for (row, speed) in speeds.calls.iter().rev().enumerate() {
        let base = row as f64;
        let bar = |low: f64, high: f64, value: f64, color: RGBColor| {
            Rectangle::new([(0.0, base + low), (value, base + high)], color.filled())
        };
        chart.draw_series([bar(0.5, 0.85, speed.grant, GRANT), bar(0.15, 0.5, speed.refuse, REFUSE)])?;
        let (x, y) = chart.backend_coord(&(0.0, base + 0.5));
        let style = ("sans-serif", 13).into_font().into_text_style(&root);
        let style = style.pos(plotters::style::text_anchor::Pos::new(
            plotters::style::text_anchor::HPos::Right,
            plotters::style::text_anchor::VPos::Center,
        ));
        root.draw(&Text::new(label(&base), (x - 6, y), style))?;
    }
    for (name, color) in [("grant", GRANT), ("refuse", REFUSE)] {
        let marker = Rectangle::new([(0.0, 0.0), (0.0, 0.0)], color.filled());
        chart
            .draw_series([marker])?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
    }
    label_series(&mut chart)?;
    root.present()?;
    Ok(())
}

const GRANT: RGBColor = RGBColor(36, 99, 160);
const REFUSE: RGBColor = RGBColor(222, 140, 58);

fn threads_chart(path: &Path, contention: &[Contention]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, (900, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    // Leases don't share, and would be off the chart.
    let shown = || contention.iter().filter(|of| of.granted && of.name != LEASE);
    let most = shown().flat_map(|of| &of.rates).copied().fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(&root)
        .caption("Millions of granted calls a second on one bucket, all together", ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(35)
        .y_label_area_size(45)
        .build_cartesian_2d(0.0..(WORKERS.len() - 1) as f64, 0.0..most * 1.05)?;
    chart
        .configure_mesh()
        .x_desc("threads or processes")
        .x_labels(4)
        .x_label_formatter(&|x| WORKERS.get(x.round() as usize).map_or(String::new(), usize::to_string))
        .draw()?;
    for (index, Contention { name, clock, rates, .. }) in shown().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let points: Vec<(f64, f64)> = rates.iter().enumerate().map(|(step, rate)| (step as f64, *rate)).collect();
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(format!("{name} ({clock})"))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
    }
    label_series(&mut chart)?;
    root.present()?;
    Ok(())
}

/// Says what the colours mean.
fn label_series(chart: &mut Chart<'_>) -> Result<(), Box<dyn Error>> {
    let mut labels = chart.configure_series_labels();
    labels.position(SeriesLabelPosition::UpperRight).border_style(BLACK).background_style(WHITE).draw()?;
    Ok(())
}

type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
