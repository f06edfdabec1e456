//! Compiles the cases in: a chip has no files.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let cases = tollgate_conformance::own_cases()?;
    // What `Debug` prints is Rust, but for the reference.
    let cases = format!("&{cases:?}").replace("steps: [", "steps: &[");
    std::fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("cases.rs"), cases)?;
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
