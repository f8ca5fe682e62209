//! `volfs doctor`: probes the machine, checks what was found, and prints the findings with their remedies.

mod probes;

use std::io;
use std::ops::RangeInclusive;

use clap::Args;
use serde_json::{Value, json};

use self::probes::{Helper, MountProbe, ProbePaths, Probes, SourceState, UPDATEDB_CONF};
use super::error::CliError;
use super::layout::{TextLayout, Tone};
use super::machine::{
    DEVICE, FUSE_CONF, Obstacle, allow_other_is_forbidden, closed_device, no_helper, permits_allow_other,
};
use super::mounts::{NoStatus, all_mounts};
use super::output;
use super::processes::Daemon;
use super::text::{Size, escaped, escaped_path};
use crate::mount::HELPER;
use crate::view::json_text;

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLE)]
pub(super) struct DoctorArgs {
    /// Print JSON for programs
    ///
    /// `can_mount`, and `findings`: a list of level (ok, note, problem), subject, text and remedy.
    #[arg(long)]
    pub json: bool,
}

const DOCTOR_EXAMPLE: &str = "\
Example:
  volfs doctor
  volfs doctor --json | jq .can_mount";

/// Open files that are enough for a daemon: its datasets, the files that clients read, and a reserve.
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

/// The type of a mount of volfs.
const KIND: &str = "fuse.volfs";

/// Prints what helps or prevents mounting on this machine.
pub(super) fn run(args: &DoctorArgs) -> Result<(), CliError> {
    let probes = Probes::collect(&ProbePaths::system(), &all_mounts()?);
    let findings = check(&probes);
    if args.json {
        output::print(&json_text(&findings_json(&findings)))?;
    } else {
        let mut layout = TextLayout::new(output::coloured());
        findings.iter().for_each(|finding| write(&mut layout, finding));
        output::print(layout.text())?;
    }
    if can_mount(&findings) {
        return Ok(());
    }
    Err(CliError::new("this machine cannot mount yet", "fix what is marked \"problem\" and run volfs doctor again"))
}

fn can_mount(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.level != Level::Problem)
}

fn write(layout: &mut TextLayout, finding: &Finding) {
    let tone = match finding.level {
        Level::Ok => Tone::Good,
        Level::Note => Tone::Careful,
        Level::Problem => Tone::Bad,
    };
    layout.item(tone, finding.level.name(), &finding.text, finding.remedy.as_deref());
}

fn findings_json(findings: &[Finding]) -> Value {
    let each = |finding: &Finding| {
        json!({
            "level": finding.level.name(),
            "subject": finding.subject,
            "text": finding.text,
            "remedy": finding.remedy,
        })
    };
    json!({"can_mount": can_mount(findings), "findings": findings.iter().map(each).collect::<Vec<_>>()})
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Prevents mounting.
    Problem,
}

impl Level {
    /// The name that is printed, also in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    /// The severity.
    pub level: Level,
    /// What was checked.
    pub subject: &'static str,
    /// What was found.
    pub text: String,
    /// What the user can do about it.
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Ok, subject, text: text.into(), remedy: None }
    }

    fn note(subject: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { level: Level::Note, subject, text: text.into(), remedy: Some(remedy.into()) }
    }

    fn problem(subject: &'static str, obstacle: Obstacle) -> Self {
        Self { level: Level::Problem, subject, text: obstacle.what, remedy: Some(obstacle.remedy) }
    }
}

/// Runs all checks.
fn check(probes: &Probes) -> Vec<Finding> {
    let mut findings = vec![device(probes), rights(probes), allow_other(probes)];
    findings.extend(kernel(&probes.release));
    findings.extend(mounts(probes));
    findings.extend(read_ahead(probes));
    findings.extend(probes.updatedb.as_deref().map(updatedb));
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
            let mut obstacle = closed_device(DEVICE, error);
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
                let helper = escaped_path(&helper.path);
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
                no_helper().remedy,
            ),
        };
    }
    let obstacle = match &probes.helper {
        _ if probes.root || !probes.privileges.helper => Obstacle::new(
            "neither this process nor one that it starts may mount: it lacks CAP_SYS_ADMIN, or no_new_privs is set",
            format!("in a container start with --device {DEVICE} --cap-add SYS_ADMIN, without no-new-privileges"),
        ),
        None => no_helper(),
        Some(helper) if !helper.setuid => {
            let path = escaped_path(&helper.path);
            Obstacle::new(
                format!("{path} is not setuid root, so it cannot mount for ordinary users"),
                format!("type: {}", setuid(helper)),
            )
        }
        Some(helper) => return Finding::ok(subject, format!("{} mounts for this user", escaped_path(&helper.path))),
    };
    Finding::problem(subject, obstacle)
}

fn setuid(helper: &Helper) -> String {
    let path = escaped_path(&helper.path);
    format!("sudo chown root {path} && sudo chmod u+s {path}")
}

fn allow_other(probes: &Probes) -> Finding {
    let subject = "allow_other";
    if permits_allow_other(&probes.conf) {
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
    Finding::note(subject, allow_other_is_forbidden().what, format!("if you need it type: {remedy}"))
}

fn kernel(release: &str) -> Vec<Finding> {
    let subject = "kernel";
    let Some(version) = version(release) else {
        let text = format!("the kernel's release {release:?} is unknown");
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
        let place = escaped_path(&mount.mountpoint);
        let type_umount = |lazy: &str| format!("to clear it type: volfs umount {lazy}{place}");
        match &mount.answer {
            Ok(()) | Err(NoStatus::Denied) => source(mount),
            Err(NoStatus::Dead) => {
                Some(Finding::note(subject, format!("the daemon of the mount at {place} died"), type_umount("")))
            }
            Err(NoStatus::Silent) => {
                let text = format!("the daemon of the mount at {place} does not answer");
                Some(Finding::note(subject, text, Daemon::remedy(mount.daemon, &mount.mountpoint)))
            }
            Err(NoStatus::Error(error)) => Some(Finding::note(
                subject,
                format!("the mount at {place} answers with an error: {error}"),
                type_umount("--lazy "),
            )),
        }
    };
    let faulty: Vec<Finding> = probes.mounts.iter().filter_map(finding).collect();
    match probes.mounts.len() {
        _ if !faulty.is_empty() => faulty,
        0 => vec![Finding::ok(subject, "volfs has nothing mounted")],
        1 => vec![Finding::ok(subject, "there is 1 mount of volfs, and it answers")],
        n => vec![Finding::ok(subject, format!("there are {n} mounts of volfs, and all answer"))],
    }
}

/// Returns what is wrong with the source of a mount whose daemon answers.
fn source(mount: &MountProbe) -> Option<Finding> {
    let (place, source) = (escaped_path(&mount.mountpoint), escaped_path(&mount.source));
    let kill = |daemon: Daemon| format!("; to end what waits for it type: kill {}", daemon.pid);
    let check_server = format!("check its file server{}", mount.daemon.map_or_else(String::new, kill));
    let answers = format!("the daemon of the mount at {place} answers, but its source {source}");
    let (text, remedy) = match &mount.source_state {
        SourceState::Answers => return None,
        SourceState::Gone => (
            format!("the source {source} of the mount at {place} is gone"),
            format!("put it back in its place, or type: volfs umount {place}"),
        ),
        SourceState::Silent => (format!("{answers} does not"), check_server),
        SourceState::Stalls(how) => (format!("{answers} stalls: {}", escaped(how)), check_server),
    };
    Some(Finding::note("mounts", text, remedy))
}

fn read_ahead(probes: &Probes) -> Vec<Finding> {
    let odd = probes
        .mounts
        .iter()
        .filter_map(|mount| Some((mount, mount.read_ahead.as_ref().filter(|(kib, _)| !READ_AHEAD.contains(kib))?)));
    odd.map(|(mount, (kib, file))| {
        let (effect, usual) = if kib > READ_AHEAD.end() {
            ("programs that jump in a mapped file read much that they do not need", READ_AHEAD.end())
        } else {
            ("streaming is slower", READ_AHEAD.start())
        };
        let (place, file) = (escaped_path(&mount.mountpoint), escaped_path(file));
        let text = format!("the kernel reads {kib} KiB ahead in {place}, not {usual}: {effect}");
        Finding::note("read-ahead", text, format!("to change it type: echo {usual} | sudo tee {file}"))
    })
    .collect()
}

fn memory(probes: &Probes) -> Finding {
    let (memory, cache) = (Size(probes.memory), Size(probes.cache));
    let limited = probes.machine_memory.filter(|machine| probes.memory < *machine);
    let of = limited.map_or_else(String::new, |machine| format!(" (of {}, by a control group)", Size(machine)));
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
    let text = "there is no system log (/dev/log): only the last 100 lines of a mount's log are kept, in .volfs/log";
    Finding::note("log", text, "to keep everything, mount with --log-file FILE")
}

/// Checks the text of updatedb.conf.
fn updatedb(conf: &str) -> Finding {
    let subject = "updatedb";
    let pruned = pruned_types(conf);
    // updatedb ignores case here
    if pruned.is_some_and(|types| types.split_ascii_whitespace().any(|kind| kind.eq_ignore_ascii_case(KIND))) {
        return Finding::ok(subject, format!("updatedb ignores mounts of volfs ({KIND})"));
    }
    let text = "updatedb (for locate) searches every mount of volfs (fuse.volfs) that root may read, and so reads the \
                header of every volume each day";
    let remedy = match pruned {
        Some(_) => format!(r#"sudo sed -i 's/^[ \t]*PRUNEFS[ \t]*=[ \t]*"/&{KIND} /' {UPDATEDB_CONF}"#),
        None => format!(r#"echo 'PRUNEFS="{KIND}"' | sudo tee -a {UPDATEDB_CONF}"#),
    };
    Finding::note(subject, text, format!("to keep it out type: {remedy}"))
}

/// Returns the types of file systems that updatedb leaves out: the value of PRUNEFS, in double quotes.
fn pruned_types(conf: &str) -> Option<&str> {
    conf.lines().rev().find_map(|line| {
        let value = line.trim_start().strip_prefix("PRUNEFS")?.trim_start().strip_prefix('=')?;
        value.trim_start().strip_prefix('"')?.split('"').next()
    })
}

#[cfg(test)]
mod tests;
