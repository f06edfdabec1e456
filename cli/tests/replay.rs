//! `tollgate replay`, against an exact rational bucket.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

mod place;

use std::fmt::Write;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use num_rational::Ratio;
use place::{Place, TOLLGATE, code, stderr, stdout};
use serde_json::Value;

/// 2 December 2026, 00:00:00 UTC.
const MIDNIGHT: u64 = 1_796_169_600;

fn replay(arguments: &str, input: &str) -> Output {
    let mut command = Command::new(TOLLGATE);
    command.arg("replay").args(arguments.split_whitespace());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may have ended before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn json(output: &Output) -> Value {
    assert_eq!(code(output), 0, "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Seconds after midnight of 100 000 requests: some at a time, then none for a while, and rush hours.
fn traffic() -> Vec<u64> {
    let mut random = 1_u64;
    let mut second = 0;
    (0..100_000_u64)
        .map(|request| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let rush = request / 10_000 % 3 == 0;
            second += match (random >> 33) % 100 {
                0..20 => u64::from(!rush),
                20..21 => 7,
                _ => 0,
            };
            second
        })
        .collect()
}

fn common_log(seconds: &[u64]) -> String {
    let mut log = String::new();
    for (number, second) in seconds.iter().enumerate() {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        writeln!(
            log,
            "192.0.2.{} - - [02/Dec/2026:{hour:02}:{minute:02}:{second:02} +0000] \"GET /{number} HTTP/1.1\" 200 512 \"-\" \"agent\"",
            number % 256
        )
        .unwrap();
    }
    log
}

type Exact = Ratio<i128>;

/// Granted, refused, the longest wait in microseconds, and the smallest burst that refuses none.
fn oracle(seconds: &[u64], rate: Exact, burst: u32) -> [u64; 4] {
    let (full, one) = (Exact::from_integer(burst.into()), Exact::from_integer(1));
    let granted = |full: Exact| {
        let (mut level, mut at, mut granted) = (full, seconds[0], 0);
        for now in seconds {
            level = full.min(level + rate * Exact::from_integer((now - at).into()));
            at = *now;
            if level >= one {
                level -= one;
                granted += 1;
            }
        }
        granted
    };
    let (mut level, mut at, mut wait) = (full, seconds[0], Exact::from_integer(0));
    for now in seconds {
        level = full.min(level + rate * Exact::from_integer((now - at).into())) - one;
        at = *now;
        wait = wait.max(-level / rate);
    }
    let all = u64::try_from(seconds.len()).unwrap();
    // By halves, since a larger burst refuses no more.
    let (mut low, mut high) = (1_u32, u32::try_from(all).unwrap());
    while low < high {
        let middle = low + (high - low) / 2;
        if granted(Exact::from_integer(middle.into())) == all { high = middle } else { low = middle + 1 }
    }
    let micros = (wait * Exact::from_integer(1_000_000)).ceil().to_integer();
    [granted(full), all - granted(full), micros.try_into().unwrap(), low.into()]
}

#[test]
fn a_log_of_a_hundred_thousand_lines() {
    let place = Place::new();
    let seconds = traffic();
    assert!(seconds.last().unwrap() < &86_400, "the log is of one day");
    let log = place.folder().join("access.log");
    std::fs::write(&log, common_log(&seconds)).unwrap();
    for (rate, exact, burst) in [
        ("10/s", Exact::from_integer(10), 100),
        ("7/3s", Exact::new(7, 3), 1),
        ("5000/h", Exact::new(5000, 3600), 5000),
        ("99999/d", Exact::new(99_999, 86_400), 100_000),
        ("4000000000/s", Exact::from_integer(4_000_000_000), 1),
    ] {
        let found = json(&replay(&format!("--json --rate {rate} --burst {burst} {}", log.display()), ""));
        let figures = ["granted", "refused", "longest_wait_us", "smallest_burst"].map(|name| found[name].as_u64());
        assert_eq!(figures, oracle(&seconds, exact, burst).map(Some), "{rate}, burst {burst}");
        assert_eq!(found["requests"], 100_000);
        assert_eq!(found["first_us"], MIDNIGHT * 1_000_000);
    }
}

#[test]
fn what_it_says_to_people() {
    let output = replay("--rate 1/s --burst 2", "1764700045\n1764700045\n1764700045.5\n1764700045.75\n\n1764700047.5");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for line in [
        "requests        5, from 2025-12-02T18:27:25Z to 2025-12-02T18:27:27.5Z",
        "rate            1 per 1s",
        "burst           2",
        "granted         3",
        "refused         2 (40.00 %)",
        "longest wait    1.25s, if each waits its turn instead",
        "smallest burst  4, to refuse none at this rate",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\nin\n{text}");
    }
    assert_eq!(text.lines().count(), 7, "{text}");
}

/// At the least burst nothing is refused, and below it something is; for the bucket's own rounding, too.
#[test]
fn the_smallest_burst_is() {
    let hour = |times: [u64; 5]| times.map(|time| time.to_string()).join("\n");
    for (rate, times) in [("1/h", [0, 0, 3599, 3600, 7200]), ("1/36500d", [0, 0, 0, 0, 0]), ("3/7s", [0, 1, 2, 3, 4])] {
        let asked = |burst| json(&replay(&format!("--json --rate {rate} --burst {burst}"), &hour(times)));
        let least = asked(1)["smallest_burst"].as_u64().unwrap();
        assert_eq!(asked(least)["refused"], 0, "{rate}");
        assert!(least == 1 || asked(least - 1)["refused"] != 0, "{rate}: {least}");
    }
}

#[test]
fn lines_without_a_stamp() {
    let log = "1764700045 a\nhello, no time here\n1764700044 b\n";
    let refused = replay("--rate 1/s", log);
    assert_eq!(code(&refused), 65);
    let said = stderr(&refused);
    assert!(said.contains("standard input:2") && said.contains("hello, no time here"), "{said}");
    assert!(said.contains("--skip"), "{said}");

    let skipped = json(&replay("--rate 1/s --skip --json", log));
    assert_eq!(
        (&skipped["requests"], &skipped["skipped"], &skipped["out_of_order"]),
        (&2.into(), &1.into(), &1.into())
    );
    let text = stdout(&replay("--rate 1/s --skip", log));
    assert!(text.contains("skipped         1 lines") && text.contains("sorted          1 stamps"), "{text}");
}

#[test]
fn what_can_not_be() {
    for (arguments, input, status, said) in [
        ("--rate 1/s", "", 65, "no time stamp"),
        ("--rate 1/s --skip", "nothing\n", 65, "no time stamp"),
        ("--rate 0/s", "0", 64, "rate of 0 tokens"),
        ("", "0", 64, "--rate"),
        ("--rate 1/s /nowhere/access.log", "", 66, "/nowhere/access.log"),
        ("--rate 1/s --svg /nowhere/chart.svg", "0", 73, "/nowhere/chart.svg"),
        ("--rate 1/36500d --burst 4294967295", "0", 64, "292000 years"),
    ] {
        let output = replay(arguments, input);
        assert_eq!(code(&output), status, "{arguments}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{arguments}: {}", stderr(&output));
    }
}

#[test]
fn a_chart() {
    let place = Place::new();
    let chart = place.folder().join("chart.svg");
    let output = replay(&format!("--rate 2/s --burst 3 --svg {}", chart.display()), "0\n0\n0\n0\n5.5\n10\n");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let svg = std::fs::read_to_string(&chart).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    for text in ["2 per 1s, burst 3: 5 granted, 1 refused", "seconds since 1970-01-01T00:00:00Z", "refused"] {
        assert!(svg.contains(text), "{text}");
    }
    // All at one time is a chart, too.
    assert_eq!(code(&replay(&format!("--rate 2/s --svg {}", chart.display()), "0\n0\n")), 0);
}
