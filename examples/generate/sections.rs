//! The sections of manual pages that the help texts do not have: files, environment, exit status.

/// A name and what it is.
pub type Entry = (&'static str, &'static str);

/// The sections of a page.
pub struct Sections {
    pub files: &'static [Entry],
    pub environment: &'static [Entry],
    pub exit_status: &'static [Entry],
}

/// The pages that every page refers to, besides those of the other commands.
pub const SEE_ALSO: &[&str] = &["volfs-layout(5)", "mount(8)", "umount(8)", "fstab(5)", "fusermount3(1)"];

/// The line of names of volfs-layout(5).
pub const LAYOUT_NAME: &str = "volfs-layout - the files of a volfs mount, and the keys of its JSON";

/// Returns the sections of a command's page.
pub fn of(command: &str) -> Sections {
    let (files, environment, exit_status): (&[Entry], &[Entry], &[Entry]) = match command {
        "volfs" => (FILES, ENVIRONMENT, EXIT_STATUS),
        "mount" => (FILES, &[LOG_LEVEL, MOUNT_OF_COMMAND], MOUNTED),
        "umount" => (&[MOUNTS], &[], EXIT_STATUS),
        "info" => (&[], COLOURS, EXIT_STATUS),
        "cat" => (&[], &[], INTERRUPTED),
        "verify" => (&[], &[], VERIFIED),
        "stats" => (&[STATUS, MOUNTS], COLOURS, EXIT_STATUS),
        "doctor" => (&[DEVICE, FUSE_CONF, MOUNTS, UPDATEDB], COLOURS, EXIT_STATUS),
        _ => (&[], &[], EXIT_STATUS),
    };
    Sections { files, environment, exit_status }
}

const DEVICE: Entry = ("/dev/fuse", "The device of FUSE, which a mount needs.");
const FUSE_CONF: Entry =
    ("/etc/fuse.conf", "With the line user_allow_other ordinary users may mount with --allow-other.");
const FSTAB: Entry = ("/etc/fstab", "Lines of the type fuse.volfs are mounted at boot, or by mount(8).");
const STATUS: Entry =
    ("MOUNTPOINT/.volfs/status.json", "The options and counters of a mount; see volfs-layout(5). Never cached.");
const LOG: Entry = ("MOUNTPOINT/.volfs/log", "The last 100 lines that the mount logged.");
const MOUNTS: Entry = ("/proc/self/mountinfo", "The list of mounts. Those of volfs are named volfs:SOURCE.");
const UPDATEDB: Entry = ("/etc/updatedb.conf", "PRUNEFS keeps locate(1) out of mounts.");

const FILES: &[Entry] = &[STATUS, LOG, DEVICE, FUSE_CONF, FSTAB, MOUNTS];

const LOG_LEVEL: Entry =
    ("RUST_LOG", "What a mount logs: error, warn, info (the default), debug or trace; see also --log-file.");
const MOUNT_OF_COMMAND: Entry = ("VOLFS_MNT", "Set for the command of --exec: the mount point.");
const NO_COLOR: Entry = ("NO_COLOR", "If it is set and not empty, the output has no colours.");
const TERM: Entry = ("TERM", "If it is dumb, the output has no colours, and nothing is drawn in place.");

const COLOURS: &[Entry] = &[NO_COLOR, TERM];
const ENVIRONMENT: &[Entry] = &[LOG_LEVEL, NO_COLOR, TERM];

const DONE: Entry = ("0", "Done.");
const FAILED: Entry = ("1", "Failed: a line on standard error says what, where, and what to do.");
const USAGE: Entry = ("2", "Wrong usage: an argument is unknown, or does not fit.");

const EXIT_STATUS: &[Entry] = &[DONE, FAILED, USAGE];
const MOUNTED: &[Entry] = &[
    ("0", "The mount answers; with --foreground: it is gone again."),
    FAILED,
    USAGE,
    ("any other", "With --exec that of the command: 127 if there is no such program, 126 if it cannot be executed."),
];
const INTERRUPTED: &[Entry] = &[
    DONE,
    FAILED,
    USAGE,
    ("129, 130, 143", "Interrupted by SIGHUP, SIGINT (Ctrl-C) or SIGTERM. The file of --output is not written then."),
];
const VERIFIED: &[Entry] = &[
    ("0", "All can be read."),
    ("1", "Something is bad, or a path cannot be found."),
    USAGE,
    ("129, 130, 143", "Interrupted by SIGHUP, SIGINT (Ctrl-C) or SIGTERM. What was found so far is printed."),
];
