//! The timer of the board, an lm3s6965evb.

use cortex_m::Peripherals;
use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use tollgate_core::{Counter, CounterError};

/// The system timer: 24 bits at 12.5 MHz.
pub const COUNTER: Counter = match Counter::new(24, 12_500_000) {
    Ok(counter) => counter,
    Err(CounterError { .. }) => panic!("it is in range"),
};

/// Starts the timer, with an interrupt whenever it comes round.
pub fn start() {
    let Some(Peripherals { mut SYST, .. }) = Peripherals::take() else { return };
    SYST.set_clock_source(SystClkSource::Core);
    SYST.set_reload(0x00ff_ffff);
    SYST.clear_current();
    SYST.enable_interrupt();
    SYST.enable_counter();
}

/// What the timer shows. It counts down.
pub fn count() -> u32 {
    !SYST::get_current()
}
