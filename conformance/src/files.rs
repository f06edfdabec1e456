//! The cases in files, as JSON. They live as long as the program.

use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer};

use crate::{Case, Step};

/// Returns the cases to check: those of the file that the variable `TOLLGATE_CASES` names, from the top of the
/// workspace if it is relative, else the project's own. They are read once.
///
/// # Errors
///
/// What is wrong with the file.
pub fn cases() -> Result<&'static [Case], String> {
    static CASES: OnceLock<Result<Vec<Case>, String>> = OnceLock::new();
    CASES.get_or_init(read).as_deref().map_err(Clone::clone)
}

fn read() -> Result<Vec<Case>, String> {
    let Some(path) = std::env::var_os("TOLLGATE_CASES") else { return own_cases() };
    // Tests run in their package's folder; the one who sets the variable is at the top.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(text.leak())
}

/// Returns the project's own cases.
///
/// # Errors
///
/// What is wrong with their files.
pub fn own_cases() -> Result<Vec<Case>, String> {
    let mut cases = parse(include_str!("../cases/bucket.json"))?;
    cases.extend(parse(include_str!("../cases/phases.json"))?);
    Ok(cases)
}

fn parse(text: &'static str) -> Result<Vec<Case>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

pub(crate) fn steps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static [Step], D::Error> {
    Vec::deserialize(deserializer).map(|steps| &*steps.leak())
}
