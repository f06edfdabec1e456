//! The memory of the board, an lm3s6965evb.

use std::error::Error;
use std::path::PathBuf;

const MEMORY: &str = "MEMORY
{
  FLASH : ORIGIN = 0x00000000, LENGTH = 256K
  RAM : ORIGIN = 0x20000000, LENGTH = 64K
}
";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(folder.join("memory.x"), MEMORY)?;
    println!("cargo::rustc-link-search={}", folder.display());
    if std::env::var_os("CARGO_FEATURE_DEFMT").is_some() {
        println!("cargo::rustc-link-arg=-Tdefmt.x");
    }
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
