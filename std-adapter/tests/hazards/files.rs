//! Files as they come to be, and whose they are.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use tollgate::{FileError, Options, SharedRateLimiter};

use crate::children::{is_root, release, skipped, start, through, works};
use crate::{Place, SLOW};

#[test]
fn a_relative_path_means_the_same_file_from_elsewhere() {
    let place = Place::new();
    place.create();
    assert_eq!(release(vec![start("goes elsewhere", &place.path())], "goes elsewhere"), [1]);
}

#[test]
fn a_full_disk_is_an_error_when_the_file_is_made() {
    if !works("unshare", &["-m"]) {
        return skipped("mounting needs root");
    }
    let made = "truncate -s 300k $image && mkfs.ext4 -q -F -O ^has_journal $image";
    let mounts = [
        ("tmpfs", "mount -t tmpfs -o size=16k none $folder".to_owned()),
        ("ext4", format!("{made} && mount -o loop $image $folder")),
    ];
    for (kind, mount) in mounts {
        let place = Place::new();
        let image = place.path().with_extension("image");
        let folder = place.0.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let script = format!(
            "image={} folder={}; {mount} || exit 9; \
             for i in 1 2 3; do dd if=/dev/zero of=$folder/full$i bs=1k 2>/dev/null; sync; done; \
             \"$@\"; code=$?; ls -A $folder >&2; exit $code",
            image.display(),
            folder.display(),
        );
        let shell = ["-m", "sh", "-c", &script, "sh"];
        let mut command = through("unshare", &shell, "creates on a full disk", &folder.join("limit"));
        let output = command.output().unwrap();
        if kind == "ext4" && output.status.code() == Some(9) {
            return skipped("there is no mkfs.ext4, or no loop device");
        }
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("creates on a full disk 1"), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let left = String::from_utf8(output.stderr).unwrap();
        let litter = |name: &&str| *name != "lost+found" && !name.starts_with("full");
        assert_eq!(left.lines().find(litter), None, "no litter on {kind}");
    }
}

/// Killed at each of its system calls in turn, a creator leaves a whole file or none, and no litter.
#[test]
fn a_creator_is_killed_at_any_system_call() {
    if !works("strace", &["-o", "/dev/null"]) {
        return skipped("strace is not installed, or must not trace");
    }
    // strace counts the calls of each kind by themselves.
    let kinds = [
        "openat",
        "fallocate",
        "write",
        "fchmod",
        "fsync",
        "linkat",
        "fstat",
        "statx",
        "fstatfs",
        "mmap",
        "close",
        "read",
        "readlink",
        "rt_sigaction",
        "munmap",
        "exit_group",
    ];
    let (mut before, mut after) = (0, 0);
    for kind in kinds {
        for call in 1..100 {
            let place = Place::new();
            let inject = format!("inject={kind}:signal=KILL:when={call}");
            let mut command = through("strace", &["-f", "-o", "/dev/null", "-e", &inject], "creates", &place.path());
            let status = command.output().unwrap().status;
            match place.entries() {
                0 => before += 1,
                1 => after += 1,
                _ => panic!("litter after {kind} number {call}"),
            }
            let limiter = SharedRateLimiter::open_or_create(place.path(), SLOW).unwrap();
            assert_eq!(limiter.available(), Ok(SLOW.capacity()));
            if status.success() {
                break;
            }
        }
    }
    assert!(before > 20 && after > kinds.len(), "killed {before} times before the file was there, {after} times after");
}

#[test]
fn who_may_only_read_sees_and_takes_nothing() {
    if !is_root() {
        return skipped("becoming another user needs root");
    }
    let place = Place::new();
    std::fs::set_permissions(place.0.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let limiter = Options::new().mode(0o644).create(place.path(), SLOW).unwrap();
    limiter.try_acquire(7).unwrap();
    // The program may be in a folder of root's: a copy where everybody finds it.
    let program = place.0.path().join("program");
    // By another process, since children that other tests fork meanwhile would have it open for writing, which exec(2) refuses.
    assert!(Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap().success());
    let nobody = |role: &str, path: &Path| {
        let mut command = Command::new(&program);
        command.args(["child", "--exact", "--nocapture"]).env("CHILD", role).env("CHILD_FILE", path);
        let output = command.uid(65534).gid(65534).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let text = nobody("may only read", &place.path());
    assert!(text.contains("may only read 999993"), "{text}");
    assert_eq!(limiter.available(), Ok(SLOW.capacity() - 7));
    // Opening a pipe for reading alone is what could block.
    let pipe = place.path().with_extension("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o644)).unwrap();
    let text = nobody("may only read a pipe", &pipe);
    assert!(text.contains("may only read a pipe 1"), "{text}");
}

#[test]
fn whose_file_it_is() {
    let place = Place::new();
    place.create();
    let mode = |mode| std::fs::set_permissions(place.path(), PermissionsExt::from_mode(mode)).unwrap();
    mode(0o662);
    let error = SharedRateLimiter::open(place.path()).unwrap_err();
    assert!(matches!(error, FileError::WorldWritable { mode: 0o662, .. }), "{error}");
    mode(0o660);
    assert!(SharedRateLimiter::open(place.path()).is_ok());
    if !is_root() {
        return skipped("giving a file away needs root");
    }
    std::os::unix::fs::chown(place.path(), Some(65534), None).unwrap();
    let error = SharedRateLimiter::open(place.path()).unwrap_err();
    assert!(matches!(error, FileError::OtherOwner { found: 65534, .. }), "{error}");
    assert!(Options::new().allow_owner(65534).open(place.path()).is_ok());
}

#[test]
fn files_of_the_kernel_and_of_nobody() {
    let place = Place::new();
    let sparse = File::create(place.path()).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let error = SharedRateLimiter::open(place.path()).unwrap_err();
    assert!(error.to_string().contains("it starts with"), "{error}");
    for path in ["/sys/kernel/mm/transparent_hugepage/enabled", "/proc/self/status", "/dev/zero", "/dev/full"] {
        if Path::new(path).exists() {
            let error = SharedRateLimiter::open(path).unwrap_err();
            assert!(matches!(error, FileError::NotALimiter { .. } | FileError::NotAFile { .. }), "{error}");
        }
    }
}
