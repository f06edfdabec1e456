//! `libtollgate`: the C functions of limits in files, `include/tollgate_file.h`, and those of `tollgate-c-core`.

#![allow(non_camel_case_types, reason = "the names are those of C")]

mod file;
mod last_error;
mod opening;
mod status;

pub use file::*;
pub use last_error::tollgate_last_error;
pub use opening::*;
// Linked in, so that the library has its functions.
pub use tollgate_c_core as core;
