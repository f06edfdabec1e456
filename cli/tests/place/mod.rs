//! A folder for one limit, and the command that uses it.

#![allow(missing_docs, unreachable_pub, dead_code, clippy::unwrap_used, reason = "shared by tests")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The command.
pub const TOLLGATE: &str = env!("CARGO_BIN_EXE_tollgate");

/// A folder for one limit.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self) -> String {
        self.0.path().join("limit").to_str().unwrap().to_owned()
    }

    /// Runs `tollgate VERB --file FILE ARGUMENTS`, split at blanks.
    pub fn tollgate(&self, verb: &str, arguments: &str) -> Output {
        self.command(verb, arguments).output().unwrap()
    }

    pub fn command(&self, verb: &str, arguments: &str) -> Command {
        let mut command = Command::new(TOLLGATE);
        command.arg(verb).arg("--file").arg(self.file()).args(arguments.split_whitespace());
        command
    }

    /// Makes a limit that never gets another token during a test, and takes all of it.
    pub fn empty(&self) {
        assert_eq!(code(&self.tollgate("take", "--rate 1/d")), 0);
    }

    pub fn show(&self) -> Value {
        serde_json::from_slice(&self.tollgate("show", "--json").stdout).unwrap()
    }
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
