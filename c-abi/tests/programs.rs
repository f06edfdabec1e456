//! The C programs of these tests, compiled and run, and that of the README.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Builds the static library, since Cargo builds none for a test; beside what it has built for this one.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let built = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
        let cargo = Command::new(env!("CARGO"))
            .args(["build", "--locked", "-p", "tollgate-c", "--target-dir"])
            .arg(&built)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
        built.join("debug/libtollgate.a")
    })
}

/// Compiles a program against the library, and runs it in a folder of its own.
fn run(source: &Path) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg("-I")
        .arg(here.join("include"))
        .arg(source)
        .arg(library())
        .args(["-lm", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(program).arg(folder.path()).current_dir(folder.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{}: {printed}", ran.status);
    printed
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name)
}

#[test]
fn memory() {
    assert!(run(&source("memory.c")).ends_with(" passed, 0 failed\n"));
}

#[test]
fn file() {
    assert!(run(&source("file.c")).ends_with(" passed, 0 failed\n"));
}

/// Every status of the header has a text of its own.
#[test]
fn texts() {
    let header = include_str!("../include/tollgate.h");
    let numbers = header.lines().filter_map(|line| line.strip_suffix(',')?.split_once(" = ")?.1.parse().ok());
    let mut texts: Vec<_> = numbers
        .map(|number: i32| {
            // SAFETY: it returns a text that is there for ever.
            unsafe { std::ffi::CStr::from_ptr(tollgate_c_core::tollgate_strerror(number)) }
        })
        .collect();
    assert!(texts.len() > 30, "{texts:?}");
    let count = texts.len();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), count, "two have one text: {texts:?}");
    assert!(!texts.contains(&c"no status of tollgate"));
}
