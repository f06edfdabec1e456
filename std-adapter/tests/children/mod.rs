//! Child processes of a test: this program again, with the test `child` alone, told by its environment what to do.

#![allow(missing_docs, unreachable_pub, dead_code, clippy::unwrap_used, clippy::panic, reason = "shared by tests")]

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The command that starts a child in this role.
pub fn command(role: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "--exact", "--nocapture"]).env("CHILD", role).env("CHILD_FILE", path);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a child in this role.
pub fn start(role: &str, path: &Path) -> Child {
    command(role, path).spawn().unwrap()
}

/// The same, started by another program, for example one that gives it a namespace of its own.
pub fn through(program: &str, arguments: &[&str], role: &str, path: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).arg(std::env::current_exe().unwrap()).args(["child", "--exact", "--nocapture"]);
    command.env("CHILD", role).env("CHILD_FILE", path);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Lets all children go at once, and returns the number that each one prints behind its role.
pub fn release(mut children: Vec<Child>, role: &str) -> Vec<u64> {
    for child in &mut children {
        drop(child.stdin.take());
    }
    children.into_iter().map(|child| number(child, role)).collect()
}

fn number(child: Child, role: &str) -> u64 {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split(role).nth(1));
    let line = line.unwrap_or_else(|| panic!("{}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)));
    line.trim().parse().unwrap()
}

/// What a child does; nothing where this is no child.
pub fn role() -> Option<(String, std::path::PathBuf)> {
    Some((std::env::var("CHILD").ok()?, std::env::var_os("CHILD_FILE").unwrap().into()))
}

/// Waits until the parent lets go.
pub fn wait_for_the_others() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Says why a test is not made, and counts as passed.
pub fn skipped(reason: &str) {
    println!("skipped: {reason}");
}

/// Whether this program can be run, and may do here what it does.
pub fn works(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).arg("true").output().is_ok_and(|output| output.status.success())
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
