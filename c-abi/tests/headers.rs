//! The headers are those of the source. To write them: `TOLLGATE_WRITE_HEADERS=1 cargo test -p tollgate-c --test headers`.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::PathBuf;

use cbindgen::{Builder, Config};

#[test]
fn tollgate_h_is_up_to_date() {
    check("core", "tollgate.h");
}

#[test]
fn tollgate_file_h_is_up_to_date() {
    check(".", "tollgate_file.h");
}

fn check(package: &str, header: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let package = folder.join(package);
    let config = Config::from_file(package.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    Builder::new().with_crate(&package).with_config(config).generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();

    let path = folder.join("include").join(header);
    if std::env::var_os("TOLLGATE_WRITE_HEADERS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let same = kept.lines().zip(made.lines()).take_while(|(kept, made)| kept == made).count();
    let path = path.display();
    assert!(kept == made, "{path}:{}: not what the source says; write it with TOLLGATE_WRITE_HEADERS=1", same + 1);
}
