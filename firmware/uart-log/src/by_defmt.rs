//! The lines by defmt: a number for the text, and its arguments.

use defmt_semihosting as _;

use crate::log::Source;

pub fn line(source: Source, text: &str) {
    defmt::println!("{}: {=str}", source, text);
}

pub fn suppressed(source: Source, lines: u32) {
    defmt::println!("{}: {=u32} suppressed", source, lines);
}
