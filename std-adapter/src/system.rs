//! What each operating system does its own way: files that nobody else can name, clocks that all processes share.

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_vendor = "apple")]
pub(crate) use apple::{allocate, boot_id, kernel_clock, link, namespace, now_micros, now_nanos, open_unnamed, remote};
#[cfg(target_os = "linux")]
pub(crate) use linux::{allocate, boot_id, kernel_clock, link, namespace, now_micros, now_nanos, open_unnamed, remote};
#[cfg(unix)]
pub(crate) use unix::{Identity, careful, is_link, kind, not_a_file, owner, set_mode};
#[cfg(windows)]
pub(crate) use windows::{
    Identity, allocate, boot_id, careful, is_link, kernel_clock, kind, link, namespace, not_a_file, now_micros,
    now_nanos, open_unnamed, owner, remote, set_mode,
};

#[cfg(not(any(target_os = "linux", target_vendor = "apple", windows)))]
compile_error!("tollgate knows the shared clocks of Linux, macOS and Windows");
