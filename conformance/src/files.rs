//! The cases in files, as JSON. They live as long as the program.

use std::path::Path;

use serde::{Deserialize, Deserializer};

use crate::{Case, Step};

/// Reads a list of cases.
///
/// # Errors
///
/// What is wrong with the text, if it is not a list of cases.
pub fn parse(text: String) -> Result<Vec<Case>, String> {
    serde_json::from_str(text.leak()).map_err(|error| error.to_string())
}

/// Returns the cases to check: those of the file that the variable `TOLLGATE_CASES` names, from the top of the
/// workspace if it is relative, else the project's own.
///
/// # Errors
///
/// What is wrong with the file.
pub fn cases() -> Result<Vec<Case>, String> {
    if let Some(path) = std::env::var_os("TOLLGATE_CASES") {
        // Tests run in their package's folder; the one who sets the variable is at the top.
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        return parse(text);
    }
    own_cases()
}

/// Returns the project's own cases.
///
/// # Errors
///
/// What is wrong with their files.
pub fn own_cases() -> Result<Vec<Case>, String> {
    let mut cases = parse(include_str!("../cases/bucket.json").to_owned())?;
    cases.extend(parse(include_str!("../cases/phases.json").to_owned())?);
    Ok(cases)
}

pub(crate) fn steps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static [Step], D::Error> {
    Vec::deserialize(deserializer).map(|steps| &*steps.leak())
}
