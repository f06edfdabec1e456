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
pub(crate) use apple::{
    allocate, boot_id, exists, file_in_memory, kernel_clock, link, namespace, now_micros, now_nanos, open_unnamed,
    pid_space, remote, started,
};
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    allocate, boot_id, exists, file_in_memory, kernel_clock, link, namespace, now_micros, now_nanos, open_unnamed,
    pid_space, remote, started,
};
#[cfg(unix)]
pub(crate) use unix::{Identity, careful, is_link, kind, not_a_file, owner, set_mode};
#[cfg(windows)]
pub(crate) use windows::{
    Identity, allocate, boot_id, careful, exists, file_in_memory, is_link, kernel_clock, kind, link, namespace,
    not_a_file, now_micros, now_nanos, open_unnamed, owner, pid_space, remote, set_mode, started,
};

#[cfg(not(any(target_os = "linux", target_vendor = "apple", windows)))]
compile_error!("tollgate knows the shared clocks of Linux, macOS and Windows");
