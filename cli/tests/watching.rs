//! Limits that are watched, as a black box.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod place;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use place::{Place, TOLLGATE, code, stderr, stdout};
use serde_json::Value;

/// A process that has the limit open, after it was granted a token.
fn running(place: &Place) -> (Child, BufReader<ChildStdout>) {
    let mut command = place.command("run", "-- sh -c");
    let mut child = command.arg("echo up; read line").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    (child, output)
}

/// Runs `tollgate ARGUMENTS` where FOLDER is that of the named limits.
fn in_folder(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(TOLLGATE);
    command.args(arguments.split_whitespace()).env("TOLLGATE_DIR", folder).output().unwrap()
}

#[test]
fn processes_and_what_each_was_granted() {
    let place = Place::new();
    assert_eq!(code(&place.tollgate("set", "--rate 1/d --burst 5")), 0);
    let (mut child, _output) = running(&place);
    assert_eq!(code(&place.tollgate("take", "-n 3")), 0);
    assert_eq!(code(&place.tollgate("take", "-n 3 --no-wait")), 75);
    assert_eq!(code(&place.tollgate("refund", "-n 2")), 0);

    let shown = place.show();
    let count = |name: &str| shown[name].as_u64().unwrap();
    assert_eq!((count("granted_calls"), count("granted_tokens"), count("refused_calls")), (2, 4, 1));
    assert_eq!(count("refunded_tokens"), 2);
    // Who has ended is not there any more, and who looks is none of them.
    let [process] = &shown["processes"].as_array().unwrap()[..] else { panic!("{shown}") };
    assert_eq!((&process["pid"], &process["command"]), (&child.id().into(), &"tollgate".into()));
    assert_eq!((&process["granted_tokens"], &process["refused_calls"]), (&1.into(), &0.into()));
    assert!(process["idle_us"].as_u64().unwrap() > 0);

    let text = stdout(&place.tollgate("show", ""));
    assert!(text.contains("\ntokens      4 granted, 2 refunded\ncalls       2 granted, 1 refused\n"), "{text}");
    assert!(
        text.contains(&format!("\nprocesses   1\n  {:>8} tollgate        granted 1, refused 0, idle ", child.id())),
        "{text}"
    );

    // Killed with what it runs: its counts stay.
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = place.show();
    assert_eq!((&shown["granted_calls"], &shown["processes"]), (&2.into(), &Value::Array(Vec::new())));
}

#[test]
fn who_waits_is_granted_and_not_refused() {
    let place = Place::new();
    for _ in 0..3 {
        assert_eq!(code(&place.tollgate("take", "--rate 20/s --burst 1")), 0);
    }
    let three = place.command("pipe", "").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut pipe = three.unwrap();
    pipe.stdin.take().unwrap().write_all(b"1\n2\n3\n").unwrap();
    assert_eq!(stdout(&pipe.wait_with_output().unwrap()), "1\n2\n3\n");
    let shown = place.show();
    assert_eq!((&shown["granted_calls"], &shown["refused_calls"]), (&6.into(), &0.into()), "{shown}");
    let waits = shown["waits"].as_array().unwrap();
    assert_eq!(waits.iter().map(|class| class["calls"].as_u64().unwrap()).sum::<u64>(), 6);
    // The lines of the pipe came at once, so that two of them waited for 50 ms at least.
    assert!(shown["waited_us"].as_u64().unwrap() >= 100_000, "{shown}");
    assert_eq!(waits.first().unwrap()["below_us"], 256);
    assert_eq!(waits.last().unwrap()["below_us"], Value::Null);
    assert!(stdout(&place.tollgate("show", "")).contains("\nwaited      "));

    // In vain: one refusal, though it tried more than once.
    let place = Place::new();
    place.empty();
    assert_eq!(code(&place.tollgate("take", "-w 0.2")), 75);
    assert_eq!(place.show()["refused_calls"], 1);
}

#[test]
fn several_limits_count_as_one_call_each() {
    let place = Place::new();
    let folder = place.folder();
    assert_eq!(code(&in_folder(folder, "set --name requests --rate 5/d --burst 5")), 0);
    assert_eq!(code(&in_folder(folder, "set --name tokens --rate 100/d --burst 100")), 0);
    let both = "--limit requests=1 --limit tokens=80 --no-wait";
    assert_eq!(code(&in_folder(folder, &format!("take {both}"))), 0);
    assert_eq!(code(&in_folder(folder, &format!("take {both}"))), 75);
    let counts = |name: &str| {
        let shown: Value =
            serde_json::from_slice(&in_folder(folder, &format!("show --json --name {name}")).stdout).unwrap();
        ["granted_calls", "granted_tokens", "refused_calls", "refunded_tokens"]
            .map(|count| shown[count].as_u64().unwrap())
    };
    // One file, by two names, is one limit: one call, one wait.
    let twice = format!("take --limit requests=1 --limit {}=2", folder.join("requests").display());
    assert_eq!(code(&in_folder(folder, &twice)), 0);
    let shown = in_folder(folder, "show --json --name requests");
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&shown["granted_calls"], &shown["granted_tokens"]), (&2.into(), &4.into()));
    let waits = shown["waits"].as_array().unwrap();
    assert_eq!(waits.iter().map(|class| class["calls"].as_u64().unwrap()).sum::<u64>(), 2);
    assert_eq!(code(&in_folder(folder, "refund --name requests -n 3")), 0);
    // What was taken for a moment, and given back, since the other one refused, is no call.
    assert_eq!(counts("requests"), [2, 4, 0, 3]);
    assert_eq!(counts("tokens"), [1, 80, 1, 0]);
}

/// The value of a metric of a limit, by the start of its line.
fn value(page: &str, metric: &str, limit: &Path) -> Option<f64> {
    let start = format!("{metric}{{limit=\"{}\"}} ", limit.display());
    page.lines().find_map(|line| line.strip_prefix(&start))?.parse().ok()
}

#[test]
fn a_page_for_prometheus() {
    let place = Place::new();
    let folder = place.folder();
    let (one, two, other) = (folder.join("one"), folder.join("two"), folder.join("other"));
    assert_eq!(code(&in_folder(folder, "take --name one --rate 10/d --burst 10 -n 4")), 0);
    assert_eq!(code(&in_folder(folder, "take --name two --rate 0.5/s --burst 1")), 0);
    assert_eq!(code(&in_folder(folder, "pause --name two 2h")), 0);
    std::fs::write(&other, "something of mine").unwrap();

    let output = in_folder(folder, "metrics");
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    let page = stdout(&output);
    for (metric, limit, expected) in [
        ("tollgate_granted_calls_total", &one, 1.0),
        ("tollgate_granted_tokens_total", &one, 4.0),
        ("tollgate_granted_tokens_total", &two, 1.0),
        ("tollgate_refused_calls_total", &two, 0.0),
        ("tollgate_available_tokens", &one, 6.0),
        ("tollgate_burst_tokens", &one, 10.0),
        ("tollgate_rate_tokens_per_second", &two, 0.5),
        ("tollgate_paused_seconds", &one, 0.0),
        ("tollgate_wait_seconds_count", &one, 1.0),
        ("tollgate_processes", &one, 0.0),
        ("tollgate_up", &one, 1.0),
        ("tollgate_up", &other, 0.0),
    ] {
        assert_eq!(value(&page, metric, limit), Some(expected), "{metric} of {}: {page}", limit.display());
    }
    assert!(value(&page, "tollgate_paused_seconds", &two).unwrap() > 7000.0);
    assert!(page.contains("# TYPE tollgate_granted_calls_total counter\n"));
    assert!(page.contains("# TYPE tollgate_wait_seconds histogram\n"));
    let infinite = format!("tollgate_wait_seconds_bucket{{limit=\"{}\",le=\"+Inf\"}} 1\n", one.display());
    assert!(page.contains(&infinite), "{page}");

    let page = stdout(&in_folder(folder, "metrics --name two"));
    assert_eq!(value(&page, "tollgate_up", &one), None);
    assert_eq!(value(&page, "tollgate_up", &two), Some(1.0));
    assert_eq!(code(&in_folder(folder, "metrics --name other")), 65);
    assert_eq!(code(&in_folder(folder, "metrics --name none")), 66);
    for (address, expected, remedy) in
        [("9090", 64, "for example 127.0.0.1:9090"), ("192.0.2.1:9090", 69, "an address of this machine")]
    {
        let output = in_folder(folder, &format!("metrics --serve {address}"));
        assert_eq!(code(&output), expected, "{}", stderr(&output));
        assert!(stderr(&output).contains(remedy), "{}", stderr(&output));
    }
}

#[test]
fn each_limit_is_on_the_page_once_by_its_whole_path() {
    let place = Place::new();
    let folder = place.folder();
    assert_eq!(code(&in_folder(folder, "take --name limit --rate 10/d --burst 10 -n 4")), 0);
    let mut command = Command::new(TOLLGATE);
    command.current_dir(folder).env("TOLLGATE_DIR", ".");
    let output = command.args(["metrics", "--file", "limit", "--file", "./limit", "--name", "limit"]).output().unwrap();
    let page = stdout(&output);
    assert_eq!(page.matches("\ntollgate_up{").count(), 1, "{page}");
    let path = folder.join("limit");
    for metric in ["tollgate_up", "tollgate_burst_tokens"] {
        assert!(value(&page, metric, &path).is_some(), "{page}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_not_made() {
    let place = Place::new();
    let folder = place.folder().join("typo");
    for verb in ["metrics", "watch", "metrics --name limit", "watch --name limit"] {
        let output = in_folder(&folder, verb);
        assert_eq!(code(&output), 66, "{verb}: {}", stderr(&output));
        assert!(stderr(&output).contains("makes it with its first limit"), "{}", stderr(&output));
        assert!(!folder.exists());
    }
}

/// Counts that nobody has counted: they are in no checksum.
#[test]
fn any_counts_can_be_shown() {
    let place = Place::new();
    place.empty();
    let mut bytes = std::fs::read(place.file()).unwrap();
    for byte in bytes.iter_mut().skip(4096) {
        *byte = 0xff;
    }
    std::fs::write(place.file(), bytes).unwrap();
    for (verb, arguments) in [("show", ""), ("show", "--json"), ("metrics", ""), ("take", "--no-wait")] {
        let output = place.tollgate(verb, arguments);
        let expected = if verb == "take" { 75 } else { 0 };
        assert_eq!(code(&output), expected, "{verb} {arguments}: {}", stderr(&output));
    }
}

#[test]
fn names_do_nothing_to_a_terminal() {
    let place = Place::new();
    let file = place.folder().join("a\x1b]0;t\x07\nb");
    let run = |verb: &str, rest: &[&str]| {
        Command::new(TOLLGATE).arg(verb).arg("--file").arg(&file).args(rest).output().unwrap()
    };
    assert!(stderr(&run("show", &[])).ends_with("b: there is no such file\n"));
    assert_eq!(code(&run("take", &["--rate", "1/d"])), 0);
    for output in [run("show", &[]), run("take", &["--no-wait"])] {
        let text = stdout(&output) + &stderr(&output);
        assert!(text.contains("a\u{fffd}]0;t\u{fffd}\u{fffd}b"), "{text:?}");
    }
}

/// A process that is killed when the test ends, however it does.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_page_over_http() {
    let place = Place::new();
    assert_eq!(code(&place.tollgate("take", "--rate 10/d --burst 10 -n 4")), 0);
    let mut command = place.command("metrics", "--serve 127.0.0.1:0");
    let mut server = Server(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.strip_prefix("tollgate: serving http://").unwrap().strip_suffix("/metrics\n").unwrap();
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let page = ask("GET /metrics");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{page}");
    let file = place.file();
    assert_eq!(value(&page, "tollgate_granted_tokens_total", Path::new(&file)), Some(4.0));
    assert_eq!(code(&place.tollgate("take", "-n 5")), 0);
    assert_eq!(value(&ask("GET /metrics?"), "tollgate_granted_tokens_total", Path::new(&file)), Some(9.0));
    assert!(ask("GET /").starts_with("HTTP/1.1 404 "));
    assert!(ask("POST /metrics").starts_with("HTTP/1.1 405 "));
    // Who does not say what he wants, or promises more than he sends, keeps nobody waiting.
    let slow: Vec<_> = ["", "GET /met", "GET /metrics HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n"]
        .map(|start| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(start.as_bytes()).unwrap();
            stream
        })
        .into();
    assert!(ask("GET /metrics").starts_with("HTTP/1.1 200 OK\r\n"));
    drop(slow);
    // The file goes, the server stays.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(value(&ask("GET /metrics"), "tollgate_up", Path::new(&file)), Some(0.0));
}

#[test]
fn watching_is_a_line_a_look_until_the_file_is_gone() {
    let place = Place::new();
    place.empty();
    let mut watch = place.command("watch", "--every 10ms");
    let mut child = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&line["available"], &line["burst"]), (&0.into(), &1.into()));
    }
    std::fs::remove_file(place.file()).unwrap();
    let rest = lines.map(Result::unwrap).count();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 66, "after {rest} more lines: {}", stderr(&output));
}

/// On a terminal of its own, made by script(1).
#[test]
fn watching_draws_until_a_key_is_pressed() {
    if Command::new("script").arg("--version").output().is_err() {
        println!("skipped: script is not installed");
        return;
    }
    let place = Place::new();
    assert_eq!(code(&place.tollgate("take", "--rate 1/d --burst 5")), 0);
    let screen = |which: &str| {
        let watch = format!("stty rows 40 cols 130; {TOLLGATE} watch --every 20ms {which}");
        let mut script = Command::new("script");
        script.args(["-qec", &watch, "/dev/null"]).env("TERM", "xterm").env("TOLLGATE_DIR", place.folder());
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        child.stdin.take().unwrap().write_all(b"q").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), 0);
        stdout(&output)
    };
    let one = screen("--name limit");
    assert!(one.contains("86400s") && one.contains("granted") && one.contains("\u{2588}"), "{one}");
    let all = screen("");
    assert!(all.contains("1/86400s") && all.contains("granted/s"), "{all}");
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    if Command::new("script").arg("--version").output().is_err() {
        println!("skipped: script is not installed");
        return;
    }
    let place = Place::new();
    place.empty();
    let limit = place.file();
    let script = format!(
        "before=$(stty -g); sh -c 'echo PID $$; exec {TOLLGATE} watch --every 20ms --file {limit}'; echo ended $?; \
         test $before = $(stty -g) && echo as before"
    );
    let mut command = Command::new("script");
    let command = command.args(["-qec", &script, "/dev/null"]).env("TERM", "xterm");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let (mut screen, mut signalled) = (String::new(), false);
    loop {
        let mut bytes = [0; 1000];
        let read = output.read(&mut bytes).unwrap();
        if read == 0 {
            break;
        }
        screen.push_str(&String::from_utf8_lossy(&bytes[..read]));
        // From here on it has the terminal, on its second screen.
        if !signalled && screen.contains("\u{1b}[?1049h") {
            let id = screen.split("PID ").nth(1).unwrap().split_whitespace().next().unwrap();
            assert!(Command::new("kill").args(["-TERM", id]).status().unwrap().success());
            signalled = true;
        }
    }
    child.wait().unwrap();
    assert!(screen.contains("\u{1b}[?1049l"), "{screen}");
    assert!(screen.contains("ended 143\r\nas before"), "{screen}");
}

#[test]
fn watching_a_folder() {
    let place = Place::new();
    let folder = place.folder();
    assert_eq!(code(&in_folder(folder, "take --name one --rate 10/d --burst 10 -n 4")), 0);
    let mut command = Command::new(TOLLGATE);
    command.args(["watch", "--json", "--every", "10ms"]).env("TOLLGATE_DIR", folder).stdout(Stdio::piped());
    let mut child = Server(command.spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut until = |name: &str, field: &str, value: Value| {
        let file = folder.join(name);
        let found = |line: &Value| line["file"] == file.to_str().unwrap() && line[field] == value;
        lines.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).find(found).unwrap()
    };
    until("one", "granted_tokens", 4.into());
    assert_eq!(code(&in_folder(folder, "take --name one -n 3")), 0);
    until("one", "granted_tokens", 7.into());
    // Whatever else comes and goes.
    assert_eq!(code(&in_folder(folder, "set --name two --rate 1/d")), 0);
    until("two", "burst", 1.into());
    std::fs::write(folder.join("two"), "").unwrap();
    let line = until("two", "burst", Value::Null);
    assert!(line["error"].as_str().unwrap().contains("it has 0 bytes"), "{line}");
    std::fs::remove_file(folder.join("one")).unwrap();
    assert_eq!(code(&in_folder(folder, "set --name one --rate 1/d")), 0);
    until("one", "granted_tokens", 0.into());
}
