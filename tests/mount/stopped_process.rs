//! A read-ahead process that somebody has stopped keeps nobody waiting.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::support::{Mount, SOON, children, process_lives, signal, skip, test_data, text, wait_until};

/// Stops the read-ahead process at a moment at which it has a file of the mount open; `false` if many attempts do not
/// find one.
fn stop_with_open_file(mount: &Mount, process: i32) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < SOON {
        signal(process, Signal::SIGSTOP).unwrap();
        wait_until("it is stopped", || {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
            stat.rsplit_once(") ").unwrap().1.starts_with('T')
        });
        let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        let holds = |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(mount.point()));
        if open.flatten().any(holds) {
            return true;
        }
        signal(process, Signal::SIGCONT).unwrap();
        thread::sleep(Duration::from_micros(200));
    }
    false
}

#[test]
fn a_stopped_read_ahead_process_does_not_hold_the_mount() {
    for arguments in [&[] as &[&str], &["--lazy"]] {
        let Some(mount) = Mount::of(test_data("demo")) else { return };
        let mut process = 0;
        wait_until("there is a read-ahead process", || {
            let found = children(mount.pid()).into_iter().find(|(_, name)| name == "volfs-ahead");
            process = found.map_or(0, |(pid, _)| pid);
            process > 0
        });
        let done = AtomicBool::new(false);
        let stopped = thread::scope(|scope| {
            scope.spawn(|| {
                let path = mount.data("north.zgy", "lod0.raw");
                while !done.load(Ordering::Relaxed) {
                    let mut file = File::open(&path).unwrap();
                    let size = file.metadata().unwrap().len();
                    nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED)
                        .unwrap();
                    file.rewind().unwrap();
                    let read = file.read_to_end(&mut Vec::new()).unwrap();
                    assert_eq!(read as u64, size);
                }
            });
            let stopped = stop_with_open_file(&mount, process);
            done.store(true, Ordering::Relaxed);
            stopped
        });
        if !stopped {
            return skip("the read-ahead process was never caught with an open file");
        }
        let output = mount.umount(arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(!mount.is_mounted());
        wait_until("daemon and read-ahead process have gone", || {
            !process_lives(mount.pid()) && !process_lives(process)
        });
    }
}
