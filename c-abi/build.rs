//! The shared library's name for programs that are linked with it: with its major version, as is usual.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtollgate.so.0");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
