//! The command as a black box: real processes, real files, real signals, real time.
//!
//! Time is only ever bounded from the side on which a slow machine can't fail the test.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod place;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use place::{Place, TOLLGATE, code, stderr, stdout};
use rustix::process::{Pid, Signal, kill_process};
use tollgate::{Clock, MachineClock};

fn micros() -> u64 {
    MachineClock.now_micros()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn a_hundred_starts_at_ten_a_second() {
    let place = Place::new();
    let start = micros();
    let script = format!(
        "seq 100 | xargs -P20 -I, {TOLLGATE} run --file {} --rate 10/s --burst 1 -- sh -c 'echo start'",
        place.file()
    );
    let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "start\n".repeat(100));
    assert!(micros() - start >= 9_900_000, "99 of them waited a tenth of a second each");
}

#[test]
fn two_shells_share_one_file() {
    let place = Place::new();
    let script =
        format!("for i in 1 2 3 4 5 6; do {TOLLGATE} take -f {} -r 5/d -b 5 --no-wait; echo $?; done", place.file());
    let shells: Vec<Child> = (0..2)
        .map(|_| {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(&script).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let answers: Vec<String> = shells.into_iter().map(|shell| stdout(&shell.wait_with_output().unwrap())).collect();
    let codes = answers.concat();
    assert_eq!(codes.matches("0\n").count(), 5, "{codes}");
    assert_eq!(codes.matches("75\n").count(), 7, "{codes}");
}

#[test]
fn the_child_has_the_streams_and_the_exit_code() {
    let place = Place::new();
    let rate = "--rate 1000/s --";
    let mut run = place.command("run", rate);
    let output = run.args(["sh", "-c", "echo out; echo err >&2; exit 3"]).output().unwrap();
    assert_eq!((code(&output), stdout(&output), stderr(&output)), (3, "out\n".to_owned(), "err\n".to_owned()));

    let output = place.command("run", rate).args(["sh", "-c", "kill -9 $$"]).output().unwrap();
    assert_eq!(code(&output), 128 + 9);

    // Without the dashes too, as flock(1) has it.
    let output = place.tollgate("run", "--rate 1000/s echo -n --no-wait");
    assert_eq!((code(&output), stdout(&output)), (0, "--no-wait".to_owned()));
}

#[test]
fn a_command_that_cannot_run_costs_nothing() {
    let place = Place::new();
    let output = place.tollgate("run", "--rate 3/d --burst 3 -n 2 -- /no/such/command");
    assert_eq!(code(&output), 127);
    assert_eq!(stderr(&output), "tollgate: /no/such/command: No such file or directory (os error 2)\n");
    assert_eq!(code(&place.tollgate("run", "-- /etc/passwd")), 126);
    assert_eq!(place.show()["available"], 3);
}

#[test]
fn no_token_in_time_is_said_at_once() {
    let place = Place::new();
    place.empty();
    let start = micros();
    for (arguments, expected) in
        [("--no-wait", 75), ("-w 3600", 75), ("-w 0.5 -E 9", 9), ("-w 1e3 --conflict-exit-code 0", 0)]
    {
        let output = place.tollgate("take", arguments);
        assert_eq!(code(&output), expected, "{arguments}");
        assert!(
            stderr(&output).contains("not enough tokens: 1 requested, 0 available; retry after 86"),
            "{}",
            stderr(&output)
        );
        assert_eq!(code(&place.tollgate("run", &format!("{arguments} -- echo no"))), expected);
    }
    assert!(micros() - start < 3_000_000_000, "it did not wait");
}

#[test]
fn a_token_that_comes_in_time_is_waited_for() {
    let place = Place::new();
    let start = micros();
    for _ in 0..4 {
        assert_eq!(code(&place.tollgate("take", "--rate 10/s --burst 1 -w 3600")), 0);
    }
    assert!(micros() - start >= 300_000);
}

#[test]
fn wrong_command_lines_exit_with_64_and_a_remedy() {
    let place = Place::new();
    for (verb, arguments, remedy) in [
        ("take", "--rate 10", "write for example 10/s"),
        ("take", "--rate 0/s", "at least 1 token"),
        ("take", "--rate -1/s", "write for example 10/s"),
        ("take", "--rate x/s", "write for example 10/s"),
        ("take", "--rate 1/0s", "shorter than 1µs"),
        ("take", "--rate 1/fortnight", "not a unit of time"),
        ("take", "--rate 9999999999/s", "name a shorter unit"),
        ("take", "--rate 1/d --burst 0", "0 is not in 1..=4294967295"),
        ("take", "--rate 1/d --burst 4294967296", "4294967296 is not in"),
        ("take", "--rate 1/36500d --burst 4294967295", "lower the burst or raise the rate"),
        ("take", "--burst 5", "--rate"),
        ("take", "--rate 1/d --cost 2", "give --burst 2"),
        ("take", "--rate 1/d --cost -2", "-2"),
        ("take", "--rate 1/d --wait -1", "for example 5, 0.25, 30s"),
        ("take", "--rate 1/d --wait soon", "for example 5, 0.25, 30s"),
        ("take", "--rate 1/d --wait 1 --no-wait", "cannot be used with"),
        ("take", "--rate 1/d -E 256", "256 is not in 0..=255"),
        ("take", "", "give --rate to create it"),
        ("run", "--rate 1/d", "COMMAND"),
        ("run", "-- echo", "give --rate to create it"),
        ("show", "--rate 1/d", "--rate"),
        ("jump", "", "jump"),
    ] {
        let output = place.tollgate(verb, arguments);
        assert_eq!(code(&output), 64, "{verb} {arguments}: {}", stderr(&output));
        assert!(stderr(&output).contains(remedy), "{verb} {arguments}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
    assert!(!Path::new(&place.file()).exists(), "nothing was created");
    assert_eq!(code(&Command::new(TOLLGATE).output().unwrap()), 64);
    assert_eq!(code(&Command::new(TOLLGATE).arg("--help").output().unwrap()), 0);
    assert_eq!(code(&Command::new(TOLLGATE).arg("--version").output().unwrap()), 0);
}

#[test]
fn another_quota_is_refused_and_both_are_shown() {
    let place = Place::new();
    assert_eq!(code(&place.tollgate("take", "--rate 60/m --burst 3")), 0);
    for (arguments, asked) in [("--rate 61/m --burst 3", "61 per 60s, burst 3"), ("--rate 60/m", "60 per 60s, burst 1")]
    {
        let output = place.tollgate("take", arguments);
        assert_eq!(code(&output), 64);
        assert!(stderr(&output).contains("60 per 60s, burst 3; "), "{}", stderr(&output));
        assert!(stderr(&output).contains(asked), "{}", stderr(&output));
    }
    // The same rate in other words, and the file's own.
    assert_eq!(code(&place.tollgate("take", "--rate 1/s --burst 3")), 0);
    assert_eq!(code(&place.tollgate("take", "")), 0);
    let output = place.tollgate("take", "--cost 4");
    assert_eq!(code(&output), 64);
    assert!(stderr(&output).contains("never holds more than 3"), "{}", stderr(&output));
}

#[test]
fn files_that_are_not_limits() {
    let place = Place::new();
    std::fs::write(place.file(), "something of mine").unwrap();
    for verb in ["take", "show"] {
        let output = place.tollgate(verb, "");
        assert_eq!(code(&output), 65);
        assert!(stderr(&output).contains("it has 17 bytes, not 32768; choose another path"), "{}", stderr(&output));
    }
    assert_eq!(code(&place.tollgate("take", "--rate 1/s")), 65);
    assert_eq!(std::fs::read(place.file()).unwrap(), b"something of mine");

    let nowhere = Command::new(TOLLGATE).args(["take", "--file", "/no/such/folder/limit", "--rate", "1/s"]).output();
    assert_eq!(code(&nowhere.unwrap()), 73);
    assert_eq!(code(&Command::new(TOLLGATE).args(["show", "--file", "/no/such/limit"]).output().unwrap()), 66);
}

#[test]
fn somebody_elses_file_is_refused_with_77() {
    let place = Place::new();
    place.empty();
    let program = place.folder().join("tollgate");
    std::fs::copy(TOLLGATE, &program).unwrap();
    std::fs::set_permissions(place.folder(), PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Command::new(program);
    command.args(["take", "--file", &place.file()]);
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    } else {
        std::fs::set_permissions(place.file(), PermissionsExt::from_mode(0o000)).unwrap();
    }
    let output = command.output().unwrap();
    assert_eq!(code(&output), 77, "{}", stderr(&output));
    assert!(stderr(&output).contains(&place.file()), "{}", stderr(&output));
}

#[test]
fn show_says_what_is_there_and_when_more_comes() {
    let place = Place::new();
    assert_eq!(code(&place.tollgate("take", "--rate 2/d --burst 10 --cost 4")), 0);
    let shown = place.show();
    assert_eq!(shown["file"], place.file());
    assert_eq!((&shown["tokens"], &shown["burst"], &shown["available"]), (&2.into(), &10.into(), &6.into()));
    assert_eq!(shown["period_us"], 86_400_000_000_u64);
    let (next, full) = (shown["next_token_us"].as_u64().unwrap(), shown["full_us"].as_u64().unwrap());
    // Late by at most a tick, which is less than 2^-28 of the five days that this bucket takes to fill.
    let (token, tick) = (43_200_000_000, 2_000);
    assert!(next <= token + tick && full <= 4 * token + tick && full > next, "{shown}");

    let text = stdout(&place.tollgate("show", ""));
    assert!(text.contains("rate        2 per 86400s\nburst       10\navailable   6\nnext token  in 43"), "{text}");
    assert_eq!(code(&place.tollgate("take", "--no-wait --cost 6")), 0);
    assert_eq!(place.show()["available"], 0);

    // One token short of full, both times are that of the last token.
    let place = Place::new();
    place.empty();
    let shown = place.show();
    assert_eq!(shown["next_token_us"], shown["full_us"]);
}

/// Waits until the process handles signals, which it does before it waits for tokens.
fn handles_signals(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    loop {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        // The bits of SIGHUP, SIGINT, SIGQUIT and SIGTERM.
        if u64::from_str_radix(caught.trim(), 16).unwrap() & 0x4007 == 0x4007 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_while_waiting_takes_nothing() {
    let place = Place::new();
    place.empty();
    for (number, expected) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut child = place.command("run", "-- echo no").stdout(Stdio::piped()).spawn().unwrap();
        handles_signals(&child);
        signal(&child, number);
        assert_eq!(child.wait().unwrap().code(), Some(expected));
        let mut text = String::new();
        BufReader::new(child.stdout.unwrap()).read_line(&mut text).unwrap();
        assert_eq!(text, "");
    }
    assert!(place.show()["next_token_us"].as_u64().unwrap() > 3_600_000_000, "nothing was taken");
}

#[test]
fn signals_reach_the_running_command() {
    let place = Place::new();
    let script = "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done";
    let mut run = place.command("run", "--rate 1/s -- sh -c");
    let mut child = run.arg(script).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    // The terminal's own signals are the command's business alone.
    signal(&child, Signal::INT);
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn the_demo_stays_within_the_limit() {
    for arguments in [
        "--processes 2 --seconds 1",
        "-p 3 -s 1 --rate 100000/s --burst 10",
        "-p 1 -s 1 -r 1/h -b 1",
        "-p 3 -s 1 --rate 100000/s --burst 10 --fast-clock",
    ] {
        let output = Command::new(TOLLGATE).arg("demo").args(arguments.split(' ')).output().unwrap();
        let text = stdout(&output);
        assert_eq!(code(&output), 0, "{text}{}", stderr(&output));
        assert!(text.contains("within the limit"), "{text}");
        assert!(text.contains("together"), "{text}");
    }
}
