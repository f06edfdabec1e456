//! The board that stands for each kind of processor, as QEMU has it: its memory, and its clock.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let target = std::env::var("TARGET")?;
    let (flash, ram, hertz) = match target.as_str() {
        // microbit
        "thumbv6m-none-eabi" => ("0x00000000, LENGTH = 256K", "0x20000000, LENGTH = 16K", 16_000_000),
        // lm3s6965evb
        "thumbv7m-none-eabi" => ("0x00000000, LENGTH = 256K", "0x20000000, LENGTH = 64K", 12_500_000),
        // mps2-an386
        "thumbv7em-none-eabihf" => ("0x00000000, LENGTH = 4M", "0x20000000, LENGTH = 4M", 25_000_000),
        // mps2-an505
        "thumbv8m.main-none-eabihf" => ("0x10000000, LENGTH = 4M", "0x38000000, LENGTH = 2M", 20_000_000),
        _ => return Err(format!("no board is known for {target}").into()),
    };
    let memory = format!("MEMORY\n{{\n  FLASH : ORIGIN = {flash}\n  RAM : ORIGIN = {ram}\n}}\n");
    let folder = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(folder.join("memory.x"), memory)?;
    println!("cargo::rustc-link-search={}", folder.display());
    println!("cargo::rustc-env=HERTZ={hertz}");
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
