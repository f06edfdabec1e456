//! Limits that are changed, paused, named and combined, as a black box.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod place;

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};
use std::time::Duration;

use place::{Place, TOLLGATE, code, stderr, stdout};
use tollgate::{Clock, MachineClock};

#[test]
fn a_quota_is_set_while_others_wait() {
    let place = Place::new();
    assert_eq!(code(&place.tollgate("set", "--rate 1/d --burst 5")), 0, "it is created");
    assert_eq!(code(&place.tollgate("take", "-n 5")), 0);
    let waiting = place.command("take", "").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(code(&place.tollgate("set", "--rate 100/s --burst 10")), 0);
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(0), "it did not have to wait for a day");
    let shown = place.show();
    assert_eq!((&shown["tokens"], &shown["burst"]), (&100.into(), &10.into()));
    let wrong = place.tollgate("set", "--rate 0/s");
    assert_eq!(code(&wrong), 64, "{}", stderr(&wrong));
    assert_eq!(code(&place.tollgate("set", "--burst 3")), 64, "a rate is missing");
}

#[test]
fn a_pause_and_its_end() {
    let place = Place::new();
    assert_eq!(code(&place.tollgate("set", "--rate 1/d --burst 5")), 0);
    assert_eq!(code(&place.tollgate("pause", "2h")), 0);
    assert_eq!(code(&place.tollgate("pause", "1s")), 0, "it shortens nothing");
    let refused = place.tollgate("take", "--no-wait");
    assert_eq!(code(&refused), 75);
    assert!(stderr(&refused).contains("the limit is paused; retry after 7199."), "{}", stderr(&refused));
    assert!(place.show()["paused_us"].as_u64().unwrap() > 7_000_000_000);
    assert!(stdout(&place.tollgate("show", "")).contains("\npaused      for 7199."));
    assert_eq!(place.show()["available"], 5);
    assert_eq!(code(&place.tollgate("resume", "")), 0);
    assert_eq!(place.show()["paused_us"], 0);
    assert_eq!(code(&place.tollgate("take", "--no-wait")), 0);
    for time in ["", "soon", "-1", "1y"] {
        assert_eq!(code(&place.tollgate("pause", time)), 64, "{time}");
    }
}

#[test]
fn tokens_are_given_back() {
    let place = Place::new();
    assert_eq!(code(&place.tollgate("take", "--rate 1/d --burst 5 -n 5")), 0);
    assert_eq!(code(&place.tollgate("refund", "")), 0);
    assert_eq!(code(&place.tollgate("refund", "-n 2")), 0);
    assert_eq!(place.show()["available"], 3);
    assert_eq!(code(&place.tollgate("reset", "")), 0);
    assert_eq!(place.show()["available"], 5);
    assert_eq!(code(&Command::new(TOLLGATE).args(["reset", "--file", "/no/such/limit"]).output().unwrap()), 66);
}

#[test]
fn lines_pass_in_their_order_one_a_token() {
    let place = Place::new();
    let pipe = |arguments: &str, input: &[u8]| {
        let mut pipe = place.command("pipe", arguments);
        let mut child = pipe.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    };
    let begun = MachineClock.now_micros();
    let output = pipe("--rate 50/s --burst 1", b"one\ntwo\n\nthree");
    assert_eq!(stdout(&output), "one\ntwo\n\nthree");
    assert!(MachineClock.now_micros() - begun >= 60_000, "three of them waited");
    assert_eq!(code(&place.tollgate("set", "--rate 1/d --burst 100")), 0);
    assert_eq!(code(&place.tollgate("reset", "")), 0);
    assert_eq!(code(&pipe("--bytes", b"12345\nabc\n")), 0);
    assert_eq!(place.show()["available"], 90);
    // A line of more bytes than the burst is paid for by and by.
    assert_eq!(code(&place.tollgate("set", "--rate 1000/s --burst 10")), 0);
    assert_eq!(stdout(&pipe("--bytes", &[b'x'; 35])).len(), 35);
}

#[test]
fn two_limits_hold_over_eight_processes() {
    let place = Place::new();
    let folder = place.folder().join("limits");
    let tollgate = |arguments: &str| {
        let mut command = Command::new(TOLLGATE);
        command.args(arguments.split(' ')).env("TOLLGATE_DIR", &folder);
        command
    };
    assert_eq!(code(&tollgate("set --name rpm --rate 60/d --burst 60").output().unwrap()), 0);
    assert_eq!(code(&tollgate("set --name tpm --rate 100/d --burst 16000").output().unwrap()), 0);
    assert_eq!(folder.metadata().unwrap().mode() & 0o7777, 0o700, "the folder is the user's alone");
    let script =
        format!("for i in 1 2 3 4 5; do {TOLLGATE} run --limit rpm=1 --limit tpm=800 --no-wait -- echo started; done");
    let shells: Vec<_> = (0..8)
        .map(|_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).env("TOLLGATE_DIR", &folder);
            shell.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let text: String = shells.into_iter().map(|shell| stdout(&shell.wait_with_output().unwrap())).collect();
    let started = text.matches("started").count();
    assert!((12..=20).contains(&started), "{started} of 40, where 800 × 20 is all there is");
    let available = |name: &str| {
        let output = tollgate(&format!("show --json --name {name}")).output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["available"].as_u64().unwrap()
    };
    let started = u64::try_from(started).unwrap();
    assert_eq!((available("rpm"), available("tpm")), (60 - started, 16_000 - 800 * started), "nothing was kept");

    // The one that refuses is named, and a wait that is too long for either is refused at once.
    let refused = tollgate("take --limit rpm=1 --limit tpm=16000 --wait 5").output().unwrap();
    assert_eq!(code(&refused), 75);
    assert!(stderr(&refused).contains("limits/tpm: not enough tokens"), "{}", stderr(&refused));
    let never = tollgate("take --limit rpm=61").output().unwrap();
    assert_eq!(code(&never), 64, "{}", stderr(&never));
    let none = tollgate("take --limit other=1").output().unwrap();
    assert_eq!(code(&none), 64);
    assert!(stderr(&none).contains("limits/other: there is no such file; create it with `tollgate set`"));
    for wrong in
        ["take --limit rpm", "take --limit rpm=1 --rate 1/s", "take --limit rpm=1 --file x", "take --name ../x"]
    {
        assert_eq!(code(&tollgate(wrong).output().unwrap()), 64, "{wrong}");
    }
}

#[test]
fn a_folder_that_somebody_else_could_fill_is_refused() {
    let place = Place::new();
    let folder = place.folder().join("limits");
    std::fs::create_dir(&folder).unwrap();
    let take = || {
        let mut command = Command::new(TOLLGATE);
        command.args(["take", "--name", "one", "--rate", "1/d", "--dir"]).arg(&folder).output().unwrap()
    };
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    assert_eq!(code(&take()), 77);
    assert!(stderr(&take()).contains("everybody can write to it (mode 0777)"), "{}", stderr(&take()));
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(code(&take()), 0);
    // Not through a link, wherever it leads.
    let real = place.folder().join("real");
    std::fs::rename(&folder, &real).unwrap();
    std::os::unix::fs::symlink(&real, &folder).unwrap();
    assert_eq!(code(&take()), 77);
    assert!(stderr(&take()).contains("it is not a folder"), "{}", stderr(&take()));
    if rustix::process::geteuid().is_root() {
        std::fs::remove_file(&folder).unwrap();
        std::os::unix::fs::chown(&real, Some(65534), None).unwrap();
        std::fs::rename(&real, &folder).unwrap();
        assert_eq!(code(&take()), 77);
        assert!(stderr(&take()).contains("it belongs to user 65534, not to user 0"), "{}", stderr(&take()));
    }
}

#[test]
fn without_a_folder_names_are_the_users_own() {
    let place = Place::new();
    let mut command = Command::new(TOLLGATE);
    command.args(["set", "--name", "one", "--rate", "1/d"]).env_remove("TOLLGATE_DIR");
    command.env("XDG_RUNTIME_DIR", place.folder());
    assert_eq!(code(&command.output().unwrap()), 0);
    assert!(place.folder().join("tollgate/one").exists());
}

#[test]
fn a_mode_is_what_was_asked_for() {
    let place = Place::new();
    assert_eq!(code(&place.tollgate("take", "--rate 1/d --mode 0660")), 0);
    assert_eq!(std::fs::metadata(place.file()).unwrap().mode() & 0o7777, 0o660);
    let place = Place::new();
    for mode in ["0666", "0400", "9", "rw"] {
        let output = place.tollgate("take", &format!("--rate 1/d --mode {mode}"));
        assert_eq!(code(&output), 64, "{}", stderr(&output));
    }
}

/// `: > FILE` and `truncate -s 32 FILE` under four clients that wait: each exits with an error, and none by a signal.
#[test]
fn clients_of_a_damaged_file_say_so() {
    for damage in [": >", "truncate -s 32", "rm -f"] {
        let place = Place::new();
        place.empty();
        let waiting: Vec<_> =
            (0..4).map(|_| place.command("run", "-- echo no").stderr(Stdio::piped()).spawn().unwrap()).collect();
        std::thread::sleep(Duration::from_millis(200));
        let damaged = Command::new("sh").args(["-c", &format!("{damage} {}", place.file())]).status().unwrap();
        assert!(damaged.success());
        let (expected, reason) = if damage == "rm -f" { (69, "was removed") } else { (65, "was damaged") };
        for client in waiting {
            let output = client.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(expected), "{damage}: {}", output.status);
            assert!(stderr(&output).contains(reason) && stderr(&output).contains(&place.file()), "{}", stderr(&output));
        }
    }
}

#[test]
fn completions_and_manual_pages_are_made() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = Command::new(TOLLGATE).args(["completions", shell]).output().unwrap();
        assert!(stdout(&output).contains("conflict-exit-code"), "{shell}");
    }
    assert_eq!(code(&Command::new(TOLLGATE).arg("man").arg(place.folder()).output().unwrap()), 0);
    let page = std::fs::read_to_string(place.folder().join("tollgate-run.1")).unwrap();
    assert!(page.contains(".TH tollgate-run 1"), "{page}");
    assert_eq!(code(&Command::new(TOLLGATE).args(["man", "/no/such/folder"]).output().unwrap()), 74);
}
