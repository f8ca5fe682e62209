//! The checks of `volfs doctor`: each derives a finding from the probes, and names the remedy.

use std::io;
use std::ops::RangeInclusive;

use super::crawlers;
use super::finding::Finding;
use super::probes::{Helper, MountProbe, Probes, SourceState};
use crate::cli::machine::permission::{self, DEVICE, FUSE_CONF, Obstacle};
use crate::cli::mounts::processes::Daemon;
use crate::cli::mounts::status::Answer;
use crate::cli::text::escape;
use crate::cli::text::size::Size;
use crate::mount::unmount::HELPER;

/// Open files that suffice for a daemon: its datasets, the files that clients read, and a reserve.
const OPEN_FILES: u64 = 1024;

/// The kernel's read-ahead in a mount, in KiB: from that of a local source to the kernel's default.
const READ_AHEAD: RangeInclusive<u64> = 32..=128;

/// The oldest kernel that can serve a mount.
const OLDEST_KERNEL: (u32, u32) = (4, 2);

/// Kernel versions, and what is slower or missing with any kernel before each of them.
const DRAWBACKS: [((u32, u32), &str); 3] = [
    ((4, 20), "reads are of 128 KiB at most, and not of 1 MiB: streaming with large reads is slower"),
    ((5, 16), "closing a file waits for the daemon: programs that open many files are slower"),
    ((6, 6), "with --direct-io, files cannot be mapped (np.load with mmap_mode=\"r\"); without it they can"),
];

/// Runs all checks.
pub(crate) fn run(probes: &Probes) -> Vec<Finding> {
    let mut findings = vec![device(probes), rights(probes), allow_other(probes)];
    findings.extend(kernel(&probes.release));
    findings.extend(mounts(probes));
    findings.extend(read_ahead(probes));
    findings.extend(probes.updatedb.as_deref().map(crawlers::updatedb));
    findings.extend([memory(probes), open_files(probes.open_files), log(probes.syslog)]);
    findings
}

fn device(probes: &Probes) -> Finding {
    let subject = "device";
    let mode = probes.mode.map_or_else(String::new, |mode| format!(" (mode {mode:o})"));
    match &probes.device {
        // root may open every file; if it may not open this one, the container has no access to devices
        Err(error) if probes.root && error.kind() == io::ErrorKind::PermissionDenied => Finding::problem(
            subject,
            Obstacle::new(
                format!("{DEVICE} may not be opened, not even by root"),
                format!("start the container with --device {DEVICE} --cap-add SYS_ADMIN"),
            ),
        ),
        Err(error) => {
            let mut obstacle = permission::closed_device(DEVICE, error);
            obstacle.what.push_str(&mode);
            Finding::problem(subject, obstacle)
        }
        Ok(()) if probes.mode.is_some_and(|mode| mode & 0o006 != 0o006) => Finding::note(
            subject,
            format!("{DEVICE} can be opened by this user, but not by all{mode}"),
            format!("to let others mount type: sudo chmod 666 {DEVICE}"),
        ),
        Ok(()) => Finding::ok(subject, format!("{DEVICE} can be opened{mode}")),
    }
}

fn rights(probes: &Probes) -> Finding {
    let subject = "rights";
    if probes.privileges.admin {
        return match &probes.helper {
            Some(helper) if helper.setuid => {
                let helper = escape::path(&helper.path);
                Finding::ok(subject, format!("this process may mount; {helper} mounts for ordinary users"))
            }
            Some(helper) => Finding::note(
                subject,
                format!("this process may mount, but {} cannot for ordinary users: it is not setuid root", HELPER),
                format!("to let others mount type: {}", setuid(helper)),
            ),
            None => Finding::note(
                subject,
                format!("this process may mount; ordinary users could not without {HELPER}"),
                permission::no_helper().remedy,
            ),
        };
    }
    let obstacle = match &probes.helper {
        _ if probes.root || !probes.privileges.helper => Obstacle::new(
            "neither this process nor one that it starts may mount: CAP_SYS_ADMIN is taken away, or no_new_privs is set",
            format!("in a container start with --device {DEVICE} --cap-add SYS_ADMIN, without no-new-privileges"),
        ),
        None => permission::no_helper(),
        Some(helper) if !helper.setuid => {
            let path = escape::path(&helper.path);
            Obstacle::new(
                format!("{path} is not setuid root, so that it cannot mount for ordinary users"),
                format!("type: {}", setuid(helper)),
            )
        }
        Some(helper) => return Finding::ok(subject, format!("{} mounts for this user", escape::path(&helper.path))),
    };
    Finding::problem(subject, obstacle)
}

fn setuid(helper: &Helper) -> String {
    let path = escape::path(&helper.path);
    format!("sudo chown root {path} && sudo chmod u+s {path}")
}

fn allow_other(probes: &Probes) -> Finding {
    let subject = "allow_other";
    if permission::permits_allow_other(&probes.conf) {
        return Finding::ok(
            subject,
            "users may share their mounts with --allow-other: others read what they may read in SOURCE",
        );
    }
    if probes.root {
        return Finding::ok(
            subject,
            "root may share mounts with --allow-other: others read what they may read in SOURCE",
        );
    }
    let remedy = format!("echo user_allow_other | sudo tee -a {FUSE_CONF}");
    Finding::note(subject, permission::allow_other_is_forbidden().what, format!("if you need it type: {remedy}"))
}

fn kernel(release: &str) -> Vec<Finding> {
    let subject = "kernel";
    let Some(version) = version(release) else {
        let text = format!("the kernel's release is {release:?}, of which nothing is known");
        return vec![Finding::note(subject, text, "see whether `volfs mount` works")];
    };
    if version < OLDEST_KERNEL {
        let what = format!("Linux {release} cannot serve a mount with several threads");
        return vec![Finding::problem(
            subject,
            Obstacle::new(what, "use Linux 4.2 or later; 6.6 has all that volfs uses"),
        )];
    }
    let notes: Vec<Finding> = DRAWBACKS
        .iter()
        .filter(|(since, _)| version < *since)
        .map(|((major, minor), drawback)| {
            Finding::note(subject, format!("Linux {release}: {drawback}"), format!("Linux {major}.{minor} does better"))
        })
        .collect();
    if notes.is_empty() {
        vec![Finding::ok(subject, format!("Linux {release} has all that volfs uses"))]
    } else {
        notes
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn mounts(probes: &Probes) -> Vec<Finding> {
    let subject = "mounts";
    let finding = |mount: &MountProbe| {
        let place = escape::path(&mount.mountpoint);
        let type_umount = |lazy: &str| format!("to clear it type: volfs umount {lazy}{place}");
        match &mount.answer {
            Answer::Alive(_) => source(mount, &place),
            Answer::Dead => {
                Some(Finding::note(subject, format!("the daemon of the mount at {place} died"), type_umount("")))
            }
            Answer::Silent => {
                let text = format!("the daemon of the mount at {place} does not answer");
                Some(Finding::note(subject, text, Daemon::remedy(mount.daemon, &place)))
            }
            Answer::Error(error) => Some(Finding::note(
                subject,
                format!("the mount at {place} answers with an error: {error}"),
                type_umount("--lazy "),
            )),
        }
    };
    let faulty: Vec<Finding> = probes.mounts.iter().filter_map(finding).collect();
    match probes.mounts.len() {
        _ if !faulty.is_empty() => faulty,
        0 => vec![Finding::ok(subject, "there is no mount of volfs")],
        1 => vec![Finding::ok(subject, "there is 1 mount of volfs, and it answers")],
        n => vec![Finding::ok(subject, format!("there are {n} mounts of volfs, and all answer"))],
    }
}

/// Returns what is wrong with the source of a mount whose daemon answers.
fn source(mount: &MountProbe, place: &str) -> Option<Finding> {
    let (subject, source) = ("mounts", escape::path(&mount.source));
    let kill = |daemon: Daemon| format!("; to end what waits for it type: kill {}", daemon.pid);
    let remedy = format!("see to its file server{}", mount.daemon.map_or_else(String::new, kill));
    match &mount.source_state {
        SourceState::Answers => None,
        SourceState::Gone => Some(Finding::note(
            subject,
            format!("the source {source} of the mount at {place} is gone"),
            format!("put it back in its place, or type: volfs umount {place}"),
        )),
        SourceState::Silent => Some(Finding::note(
            subject,
            format!("the daemon of the mount at {place} answers, but its source {source} does not"),
            remedy,
        )),
        SourceState::Stalls(how) => Some(Finding::note(
            subject,
            format!(
                "the daemon of the mount at {place} answers, but its source {source} stalls: {}",
                escape::text(how)
            ),
            remedy,
        )),
    }
}

fn read_ahead(probes: &Probes) -> Vec<Finding> {
    let odd = probes
        .mounts
        .iter()
        .filter_map(|mount| Some((mount, mount.read_ahead.as_ref().filter(|(kib, _)| !READ_AHEAD.contains(kib))?)));
    odd.map(|(mount, (kib, file))| {
        let (effect, usual) = if kib > READ_AHEAD.end() {
            ("programs that jump in a mapped file read much in vain", READ_AHEAD.end())
        } else {
            ("streaming is slower", READ_AHEAD.start())
        };
        let (place, file) = (escape::path(&mount.mountpoint), escape::path(file));
        let text = format!("the kernel reads {kib} KiB ahead in {place}, not {usual}: {effect}");
        Finding::note("read-ahead", text, format!("to change it type: echo {usual} | sudo tee {file}"))
    })
    .collect()
}

fn memory(probes: &Probes) -> Finding {
    let (memory, cache) = (Size::of(probes.memory), Size::of(probes.cache));
    let limited = probes.machine_memory.filter(|machine| probes.memory < *machine);
    let of = limited.map_or_else(String::new, |machine| format!(" (of {}, by a control group)", Size::of(machine)));
    Finding::ok(
        "memory",
        format!("{memory} for this process{of}; a mount's cache takes {cache} unless --cache-size says otherwise"),
    )
}

fn open_files(limit: Option<u64>) -> Finding {
    let subject = "open files";
    match limit {
        Some(limit) if limit < OPEN_FILES => Finding::note(
            subject,
            format!("a process may have {limit} files open, which is few: a mount holds up to 256 volumes open"),
            format!("type: ulimit -n {OPEN_FILES}"),
        ),
        Some(limit) => Finding::ok(subject, format!("a process may have {limit} files open")),
        None => Finding::ok(subject, "a process may have any number of files open"),
    }
}

fn log(syslog: bool) -> Finding {
    if syslog {
        return Finding::ok("log", "the system's log listens at /dev/log");
    }
    let text = "there is no system log (/dev/log): what a mount logs is kept only in .volfs/log, the last 100 lines";
    Finding::note("log", text, "to keep everything, mount with --log-file FILE")
}
