//! A log on a serial port that no source can flood, without a heap: an example to copy.
//!
//! A sensor that has come loose complains at every turn of the main loop, and the radio now and then; the timer's
//! interrupt has a line, too. Each source has a quota of its own, so that the sensor does not silence the others.

#![no_std]
#![no_main]

mod log;
#[cfg_attr(not(feature = "defmt"), path = "uart.rs")]
#[cfg_attr(feature = "defmt", path = "by_defmt.rs")]
mod port;
mod timer;

use cortex_m_rt::{entry, exception};
use log::Source;
use semihosting::process;

#[exception]
fn SysTick() {
    log::write(Source::Power, "the timer has come round");
}

#[entry]
fn main() -> ! {
    timer::start();
    let start = log::now_micros();
    let mut turns = 0_u32;
    while log::now_micros() - start < 5_000_000 {
        log::write(Source::Sensor, "no answer");
        if turns.is_multiple_of(40_000) {
            log::write(Source::Radio, "a packet is lost");
        }
        turns = turns.wrapping_add(1);
    }
    process::exit(0)
}
