//! `tollgate metrics`: what was counted, for Prometheus.

mod page;
mod serve;

use std::process::ExitCode;

use crate::args::Limits;
use crate::exit::{Failure, print};
use crate::look::look_at_all;

/// Prints the page, or serves it.
pub(crate) fn metrics(limits: &Limits, address: Option<&str>) -> Result<ExitCode, Failure> {
    let looks = look_at_all(limits)?;
    match address {
        Some(address) => serve::serve(limits, address),
        None => print(&page::page(looks)),
    }
}
