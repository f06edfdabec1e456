//! The lines as text, over the first serial port of the board.

use core::fmt::{self, Write};
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use crate::log::Source;

pub fn line(source: Source, text: &str) {
    // The port takes all there is.
    let _ = write!(Uart, "{source:?}: {text}\r\n");
}

pub fn suppressed(source: Source, lines: u32) {
    let _ = write!(Uart, "{source:?}: {lines} suppressed\r\n");
}

struct Uart;

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const DATA: usize = 0x4000_c000;
        const FLAGS: usize = 0x4000_c018;
        const FULL: u32 = 1 << 5;
        for byte in text.bytes() {
            // SAFETY: the port has a register of 32 bits there; reading it changes nothing.
            while unsafe { with_exposed_provenance::<u32>(FLAGS).read_volatile() } & FULL != 0 {}
            // SAFETY: likewise; a byte that is written is sent.
            unsafe { with_exposed_provenance_mut::<u32>(DATA).write_volatile(byte.into()) };
        }
        Ok(())
    }
}
