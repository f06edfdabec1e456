//! The C functions of tollgate that need no operating system: `include/tollgate.h`, which is made of this crate.
//!
//! Nothing here unwinds. Pointers that can't be used (null, or not aligned) are refused with a status.

#![no_std]
#![allow(non_camel_case_types, reason = "the names are those of C")]

mod bucket;
mod opaque;
mod pool;
mod quota;
mod status;

pub use bucket::*;
pub use opaque::Out;
pub use pool::*;
pub use quota::*;
pub use status::*;
