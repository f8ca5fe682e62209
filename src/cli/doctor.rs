//! `volfs doctor`: probes the machine, checks what was found, and prints the findings with their remedies.

use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use clap::Args;
use nix::errno::Errno;
use nix::unistd::getuid;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

use super::error::CliError;
use super::layout::Level;
use super::machine::{
    self, DEVICE, FUSE_CONF, Privileges, allow_other_is_forbidden, closed_device, no_helper, permits_allow_other,
};
use super::mounts::{Asker, NoStatus, Status, all_mounts, daemon_pid, stall};
use super::output;
use super::processes::Daemon;
use super::text::{Size, escaped, escaped_path};
use crate::mount::{HELPER, Mount, SideProcess, find_helper, topmost};

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

/// The configuration of updatedb, which fills the database of `locate`, and the type of mounts that it should leave out.
const UPDATEDB_CONF: &str = "/etc/updatedb.conf";
const KIND: &str = "fuse.volfs";

pub(super) fn run(args: &DoctorArgs) -> Result<(), CliError> {
    let findings = check(&Probes::collect(Path::new("/"), find_helper(), &all_mounts()?));
    let can_mount = findings.iter().all(|finding| finding.level != Level::Problem);
    let object = |Finding { level, subject, text, remedy }: &Finding| json!({"level": level.name(), "subject": subject, "text": text, "remedy": remedy});
    output::object_or_text(
        args.json,
        || json!({"can_mount": can_mount, "findings": findings.iter().map(object).collect::<Value>()}),
        |layout| findings.iter().for_each(|found| layout.finding(found.level, &found.text, found.remedy.as_deref())),
    )?;
    if can_mount {
        return Ok(());
    }
    Err(CliError::new("this machine cannot mount yet", "fix what is marked \"problem\" and run volfs doctor again"))
}

struct Finding {
    level: Level,
    subject: &'static str,
    text: String,
    remedy: Option<String>,
}

/// The findings so far, and what is being checked.
struct Findings {
    subject: &'static str,
    all: Vec<Finding>,
}

impl Findings {
    fn ok(&mut self, text: impl Into<String>) {
        self.add(Level::Ok, text.into(), None);
    }

    fn note(&mut self, text: impl Into<String>, remedy: impl Into<String>) {
        self.add(Level::Note, text.into(), Some(remedy.into()));
    }

    fn problem(&mut self, error: CliError) {
        self.add(Level::Problem, error.what, Some(error.remedy));
    }

    fn add(&mut self, level: Level, text: String, remedy: Option<String>) {
        self.all.push(Finding { level, subject: self.subject, text, remedy });
    }
}

type Check = fn(&Probes, &mut Findings);

/// The checks, by subject.
const CHECKS: [(&str, Check); 10] = [
    ("device", device),
    ("rights", rights),
    ("allow_other", allow_other),
    ("kernel", kernel),
    ("mounts", mounts),
    ("read-ahead", read_ahead),
    ("updatedb", updatedb),
    ("memory", memory),
    ("open files", open_files),
    ("log", log),
];

fn check(probes: &Probes) -> Vec<Finding> {
    let mut found = Findings { subject: "", all: Vec::new() };
    for (subject, check) in CHECKS {
        found.subject = subject;
        check(probes, &mut found);
    }
    found.all
}

fn device(probes: &Probes, found: &mut Findings) {
    let mode = probes.mode.map_or_else(String::new, |mode| format!(" (mode {mode:o})"));
    match &probes.device {
        // root may open every file; if it may not open this one, the container has no access to devices
        Err(error) if probes.root && error.kind() == io::ErrorKind::PermissionDenied => found.problem(CliError::new(
            format!("{DEVICE} may not be opened, not even by root"),
            format!("start the container with --device {DEVICE} --cap-add SYS_ADMIN"),
        )),
        Err(error) => {
            let CliError { what, remedy, .. } = closed_device(error);
            found.problem(CliError::new(what + &mode, remedy));
        }
        Ok(()) if probes.mode.is_some_and(|mode| mode & 0o006 != 0o006) => found.note(
            format!("{DEVICE} can be opened by this user, but not by all{mode}"),
            format!("to let others mount type: sudo chmod 666 {DEVICE}"),
        ),
        Ok(()) => found.ok(format!("{DEVICE} can be opened{mode}")),
    }
}

fn rights(probes: &Probes, found: &mut Findings) {
    let helper = probes.helper.as_ref().map(|helper| (escaped_path(&helper.path), helper.setuid));
    let setuid = |path| format!("type: sudo chown root {path} && sudo chmod u+s {path}");
    match (probes.privileges.admin, helper) {
        (true, Some((path, true))) => found.ok(format!("this process may mount; {path} mounts for ordinary users")),
        (true, Some((path, false))) => found.note(
            format!("this process may mount, but {HELPER} cannot for ordinary users: it is not setuid root"),
            format!("to let others mount {}", setuid(path)),
        ),
        (true, None) => {
            found.note(format!("this process may mount; ordinary users could not without {HELPER}"), no_helper().remedy)
        }
        (false, _) if probes.root || !probes.privileges.helper => found.problem(CliError::new(
            "neither this process nor one that it starts may mount: it lacks CAP_SYS_ADMIN, or no_new_privs is set",
            format!("in a container start with --device {DEVICE} --cap-add SYS_ADMIN, without no-new-privileges"),
        )),
        (false, None) => found.problem(no_helper()),
        (false, Some((path, false))) => found.problem(CliError::new(
            format!("{path} is not setuid root, so it cannot mount for ordinary users"),
            setuid(path),
        )),
        (false, Some((path, true))) => found.ok(format!("{path} mounts for this user")),
    }
}

fn allow_other(probes: &Probes, found: &mut Findings) {
    let who = match (permits_allow_other(&probes.conf), probes.root) {
        (true, _) => "users may share their mounts",
        (false, true) => "root may share mounts",
        (false, false) => {
            let remedy = format!("if you need it type: echo user_allow_other | sudo tee -a {FUSE_CONF}");
            return found.note(allow_other_is_forbidden().what, remedy);
        }
    };
    found.ok(format!("{who} with --allow-other: others read what they may read in SOURCE"));
}

fn kernel(probes: &Probes, found: &mut Findings) {
    let release = &probes.release;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
    let Some(version) = numbers.next().zip(numbers.next()) else {
        return found.note(format!("the kernel's release {release:?} is unknown"), "see whether `volfs mount` works");
    };
    if version < OLDEST_KERNEL {
        let what = format!("Linux {release} cannot serve a mount with several threads");
        return found.problem(CliError::new(what, "use Linux 4.2 or later; 6.6 has all that volfs uses"));
    }
    let newer = DRAWBACKS.iter().filter(|(since, _)| version < *since);
    for ((major, minor), drawback) in newer.clone() {
        found.note(format!("Linux {release}: {drawback}"), format!("Linux {major}.{minor} does better"));
    }
    if newer.count() == 0 {
        found.ok(format!("Linux {release} has all that volfs uses"));
    }
}

fn mounts(probes: &Probes, found: &mut Findings) {
    for mount in &probes.mounts {
        let Some(trouble) = &mount.trouble else { continue };
        let (place, source) = (escaped_path(&mount.mountpoint), escaped_path(&mount.source));
        let kill = |daemon: Daemon| format!("; to end what waits for it type: kill {}", daemon.pid);
        let check_server = format!("check its file server{}", mount.daemon.map_or_else(String::new, kill));
        let answers = format!("the daemon of the mount at {place} answers, but its source {source}");
        let (text, remedy) = match trouble {
            Trouble::OfMount(NoStatus::Dead) => {
                (format!("the daemon of the mount at {place} died"), format!("to clear it type: volfs umount {place}"))
            }
            Trouble::OfMount(NoStatus::Silent) => (
                format!("the daemon of the mount at {place} does not answer"),
                Daemon::remedy(mount.daemon, &mount.mountpoint),
            ),
            Trouble::OfMount(error) => (
                format!("the mount at {place} answers with an error: {error}"),
                format!("to clear it type: volfs umount --lazy {place}"),
            ),
            Trouble::SourceGone => (
                format!("the source {source} of the mount at {place} is gone"),
                format!("put it back in its place, or type: volfs umount {place}"),
            ),
            Trouble::SourceSilent => (format!("{answers} does not"), check_server),
            Trouble::SourceStalls(how) => (format!("{answers} stalls: {}", escaped(how)), check_server),
        };
        found.note(text, remedy);
    }
    if probes.mounts.iter().all(|mount| mount.trouble.is_none()) {
        found.ok(match probes.mounts.len() {
            0 => "volfs has nothing mounted".to_owned(),
            1 => "there is 1 mount of volfs, and it answers".to_owned(),
            n => format!("there are {n} mounts of volfs, and all answer"),
        });
    }
}

fn read_ahead(probes: &Probes, found: &mut Findings) {
    for mount in &probes.mounts {
        let odd = mount.read_ahead.as_ref().filter(|(kib, _)| !READ_AHEAD.contains(kib));
        let Some((kib, file)) = odd else { continue };
        let (effect, usual) = if kib > READ_AHEAD.end() {
            ("programs that jump in a mapped file read much that they do not need", READ_AHEAD.end())
        } else {
            ("streaming is slower", READ_AHEAD.start())
        };
        let (place, file) = (escaped_path(&mount.mountpoint), escaped_path(file));
        found.note(
            format!("the kernel reads {kib} KiB ahead in {place}, not {usual}: {effect}"),
            format!("to change it type: echo {usual} | sudo tee {file}"),
        );
    }
}

fn memory(probes: &Probes, found: &mut Findings) {
    let (memory, cache) = (Size(probes.memory), Size(probes.cache));
    let limited = probes.machine_memory.filter(|machine| probes.memory < *machine);
    let of = limited.map_or_else(String::new, |machine| format!(" (of {}, by a control group)", Size(machine)));
    found
        .ok(format!("{memory} for this process{of}; a mount's cache takes {cache} unless --cache-size says otherwise"));
}

fn open_files(probes: &Probes, found: &mut Findings) {
    match probes.open_files {
        Some(limit) if limit < OPEN_FILES => found.note(
            format!("a process may have {limit} files open, which is few: a mount holds up to 256 volumes open"),
            format!("type: ulimit -n {OPEN_FILES}"),
        ),
        Some(limit) => found.ok(format!("a process may have {limit} files open")),
        None => found.ok("a process may have any number of files open"),
    }
}

fn log(probes: &Probes, found: &mut Findings) {
    if probes.syslog {
        return found.ok("the system's log listens at /dev/log");
    }
    let text = "there is no system log (/dev/log): only the last 100 lines of a mount's log are kept, in .volfs/log";
    found.note(text, "to keep everything, mount with --log-file FILE");
}

fn updatedb(probes: &Probes, found: &mut Findings) {
    let Some(conf) = &probes.updatedb else { return };
    // the types of file systems that it leaves out: the last value of PRUNEFS, in double quotes
    let pruned = conf.lines().rev().find_map(|line| {
        let value = line.trim_start().strip_prefix("PRUNEFS")?.trim_start().strip_prefix('=')?;
        value.trim_start().strip_prefix('"')?.split('"').next()
    });
    // updatedb ignores case here
    if pruned.is_some_and(|types| types.split_ascii_whitespace().any(|kind| kind.eq_ignore_ascii_case(KIND))) {
        return found.ok(format!("updatedb ignores mounts of volfs ({KIND})"));
    }
    let text = "updatedb (for locate) searches every mount of volfs (fuse.volfs) that root may read, and so reads the \
                header of every volume each day";
    let remedy = match pruned {
        Some(_) => format!(r#"sudo sed -i 's/^[ \t]*PRUNEFS[ \t]*=[ \t]*"/&{KIND} /' {UPDATEDB_CONF}"#),
        None => format!(r#"echo 'PRUNEFS="{KIND}"' | sudo tee -a {UPDATEDB_CONF}"#),
    };
    found.note(text, format!("to keep it out type: {remedy}"));
}

/// How long all mounts together may take to answer, and then their sources.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The facts about the machine and its mounts, before any check.
struct Probes {
    /// The result of opening the FUSE device.
    device: io::Result<()>,
    /// The device's permission bits, if it exists.
    mode: Option<u32>,
    helper: Option<Helper>,
    root: bool,
    privileges: Privileges,
    /// The text of fuse.conf; empty, which permits nothing, if it cannot be read.
    conf: String,
    /// The text of updatedb.conf, if it exists and can be read.
    updatedb: Option<String>,
    release: String,
    mounts: Vec<MountProbe>,
    /// The limit of open files of a process, if there is one.
    open_files: Option<u64>,
    /// Bytes of memory that this process may use, those of the machine, and those of a mount's cache by default.
    memory: u64,
    machine_memory: Option<u64>,
    cache: u64,
    syslog: bool,
}

/// The helper that mounts for ordinary users.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Helper {
    path: PathBuf,
    /// Whether it is owned by root and has the setuid bit.
    setuid: bool,
}

struct MountProbe {
    mountpoint: PathBuf,
    /// The source, as the mount's name has it.
    source: PathBuf,
    trouble: Option<Trouble>,
    /// Its daemon, if the mount or its source does not answer and the daemon can be found.
    daemon: Option<Daemon>,
    /// The kernel's read-ahead in KiB, and the file that sets it.
    read_ahead: Option<(u64, PathBuf)>,
}

/// What is wrong with a mount. A mount that denies its status lives, and nothing is known of its source.
enum Trouble {
    OfMount(NoStatus),
    SourceGone,
    SourceSilent,
    /// The mount tells for how long the source has not answered, and how many reads wait for it.
    SourceStalls(String),
}

impl Probes {
    /// Probes the machine whose files are below `root`. Has to be called before there are threads.
    fn collect(root: &Path, helper: Option<PathBuf>, mounts: &[Mount]) -> Self {
        let at = |path: &str| root.join(path.trim_start_matches('/'));
        Self {
            device: machine::open_device(&at(DEVICE)),
            mode: fs::metadata(at(DEVICE)).ok().map(|metadata| metadata.mode() & 0o7777),
            helper: helper.map(|path| {
                let metadata = fs::metadata(&path);
                Helper { path, setuid: metadata.is_ok_and(|file| file.uid() == 0 && file.mode() & 0o4000 != 0) }
            }),
            root: getuid().is_root(),
            privileges: Privileges::of_process(),
            conf: fs::read_to_string(at(FUSE_CONF)).unwrap_or_default(),
            updatedb: fs::read_to_string(at(UPDATEDB_CONF)).ok(),
            release: fs::read_to_string(at("/proc/sys/kernel/osrelease")).unwrap_or_default().trim().to_owned(),
            mounts: mount_probes(mounts, &at("/sys/class/bdi")),
            open_files: getrlimit(Resource::Nofile).current,
            memory: machine::allowed_memory(),
            machine_memory: machine::memory_of_machine(),
            cache: machine::default_cache_size(),
            syslog: at("/dev/log").exists(),
        }
    }
}

/// Probes all mounts of volfs at the same time, except for those below another mount at the same place. What may hang,
/// side processes do. `devices` is the folder with the kernel's settings of each mounted device.
fn mount_probes(mounts: &[Mount], devices: &Path) -> Vec<MountProbe> {
    let is_on_top = |mount: &&Mount| mount.is_volfs() && topmost(mounts, &mount.mountpoint) == Some(*mount);
    let mounts: Vec<&Mount> = mounts.iter().filter(is_on_top).collect();
    let places: Vec<PathBuf> = mounts.iter().map(|mount| mount.mountpoint.clone()).collect();
    // before the mounts are asked, so that the daemons have both at the same time
    let looks: Vec<_> = places.iter().map(|place| look(place)).collect();
    let answers = Asker::default().ask(&places, TIMEOUT);
    let deadline = Instant::now() + TIMEOUT;
    let probe = |((mount, answer), look): ((&Mount, Status), _)| {
        let trouble = trouble(&answer, look, deadline);
        let daemon = match &answer {
            Err(NoStatus::Silent) => Daemon::find(mount),
            Ok(status) if trouble.is_some() => Daemon::find_answering(mount, daemon_pid(status)),
            _ => None,
        };
        let (mountpoint, source) = (mount.mountpoint.clone(), mount.source().to_owned());
        MountProbe { mountpoint, source, trouble, daemon, read_ahead: read_ahead_of(mount.device, devices) }
    };
    mounts.into_iter().zip(answers).zip(looks).map(probe).collect()
}

/// The messages of a side process that has looked at the root of a mount, for which the daemon asks its source.
const GONE: &[u8] = b"gone";
const THERE: &[u8] = b"there";

fn look(mountpoint: &Path) -> Option<SideProcess> {
    SideProcess::start(|link| {
        let error = fs::read_dir(mountpoint).err().and_then(|error| error.raw_os_error());
        link.send(if error == Some(Errno::ESTALE as i32) { GONE } else { THERE });
    })
    .ok()
}

/// Returns what is wrong with a mount: by its answer and, if it gives its status, by what a look at its root finds.
fn trouble(answer: &Status, look: Option<SideProcess>, deadline: Instant) -> Option<Trouble> {
    let status = match answer {
        Ok(status) => status,
        Err(NoStatus::Denied) => return None,
        Err(why) => return Some(Trouble::OfMount(why.clone())),
    };
    if let Some(how) = stall(status) {
        return Some(Trouble::SourceStalls(how));
    }
    match look?.link.receive(deadline) {
        None => Some(Trouble::SourceSilent),
        Some(message) => (message == GONE).then_some(Trouble::SourceGone),
    }
}

fn read_ahead_of((major, minor): (u32, u32), devices: &Path) -> Option<(u64, PathBuf)> {
    let file = devices.join(format!("{major}:{minor}")).join("read_ahead_kb");
    Some((fs::read_to_string(&file).ok()?.trim().parse().ok()?, file))
}

#[cfg(test)]
mod tests;
