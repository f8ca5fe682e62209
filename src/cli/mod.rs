//! The command line: which command was typed, and its help. Each command has a file with its arguments; their doc
//! comments are the help texts, from which the man pages are made.

mod cache;
mod cat;
mod complete;
mod deadline;
mod doctor;
mod error;
mod file_system;
mod info;
mod interrupt;
mod layout;
mod ls;
mod machine;
mod mount;
mod mounts;
mod output;
mod processes;
#[cfg(feature = "serve")]
mod serve;
mod source;
mod stats;
mod text;
mod umount;
mod verify;

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use complete::Words;
pub(crate) use complete::{Shell, script as completion_script};
pub(crate) use error::CliError;

use crate::source::raise_descriptor_limit;

/// Returns the definition of the command line, from which the man pages are made.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command that the arguments name. `args` begins with the name of the program.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> Result<(), CliError> {
    let command = Cli::read(args.into_iter().collect())?.command;
    // a mount's daemon raises its own, since a command that `mount --exec` runs has to have the limit of its caller; doctor
    // tells the limit
    if !matches!(command, Command::Mount(_) | Command::Doctor(_)) {
        raise_descriptor_limit();
    }
    match command {
        Command::Mount(args) => mount::run(args),
        Command::Umount(args) => umount::run(&args),
        Command::Ls(args) => ls::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Cat(args) => cat::run(&args),
        Command::Verify(args) => verify::run(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(args),
        Command::Stats(args) => stats::run(&args),
        Command::Cache(args) => cache::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Complete(args) => complete::run(&args),
    }
}

/// Shows seismic and microscopy volumes (ZGY, VDS, WKW, Zarr, N5, HDF5) as plain array files.
///
/// A mount turns a folder of volumes into a folder of arrays: raw samples, NumPy files and the JSON that describes
/// them, in every level of detail the volumes have. Nothing is converted and nothing is written: bricks are decoded
/// when a program reads them.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 110, after_help = CLI_EXAMPLE)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const CLI_EXAMPLE: &str = "\
Example:
  volfs ls ~/surveys
  mkdir -p ~/vol
  volfs mount ~/surveys ~/vol
  python3 -c 'import numpy as np, sys; print(np.load(sys.argv[1], \"r\"))' \\
      ~/vol/north.zgy/data/lod0.npy
  volfs umount ~/vol

A PATH may also lie inside a mount of your own or of root: then its source is meant.

`volfs SOURCE MOUNTPOINT -o OPTIONS` mounts too, so that /etc/fstab can have a
line such as
  /data/surveys  /mnt/vol  fuse.volfs  allow_other,cache_size=2GiB,nofail  0  0

For the Tab key, unless a package did it, in the start-up file of your shell:
  source <(volfs complete bash)         (zsh likewise)
  volfs complete fish | source

Exit status: 0 done, 1 failed, 2 wrong usage.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Show volumes as arrays below a folder
    ///
    /// Returns once the mount answers, and prints what is mounted. A daemon serves the mount in the background until
    /// `volfs umount` takes it away. A mount whose daemon died is cleared first. With --exec the mount lasts only while a
    /// command runs.
    Mount(mount::MountArgs),
    /// Take a mount away
    ///
    /// Waits until the mount is gone and its daemon has ended. If a program uses the mount, the mount stays and the
    /// program is named. Also clears a mount whose daemon died ("Transport endpoint is not connected"). Leaves the
    /// mounts of other programs alone.
    #[command(visible_alias = "unmount")]
    Umount(umount::UmountArgs),
    /// List the volumes and layers below a folder
    ///
    /// Prints a line for each layer: the path of its volume, its name, shape, sample type, codec and number of levels
    /// of detail. A volume that does not open has a line with the reason. Only headers are read, and lines are printed
    /// as they are found.
    #[command(visible_alias = "list")]
    Ls(ls::LsArgs),
    /// Show all that is known about one volume
    ///
    /// Axes, corners, statistics, layers and levels of detail, read from the volume's headers: no mount is needed and
    /// no brick is decoded.
    Info(info::InfoArgs),
    /// Print the samples of a volume, or of a box of it
    ///
    /// Writes samples in C order (the last axis is the fastest), little-endian, to standard output or to the file of
    /// --output. No mount is needed. Bricks are decoded on all cores, and the next ones while samples are written. On a
    /// terminal a bar shows how far a file is.
    Cat(cat::CatArgs),
    /// Find out whether every brick can be read
    ///
    /// Reads and decodes every brick of every volume below the paths, on all cores, and checks the tables for bricks
    /// that overlap and levels that are missing. Prints a line for each bad brick (neighbours share a line), with
    /// volume, layer, level, brick and reason, and a summary at the end. On a terminal a bar shows how far it is.
    Verify(verify::VerifyArgs),
    /// Show volumes as arrays over HTTP, and as a page in a browser
    ///
    /// Answers with the files that a mount would have, from the same paths: for machines without FUSE, for browsers, and
    /// for programs that read Zarr over HTTP. A browser gets a page that shows slices. Stays in the foreground until
    /// Ctrl-C (SIGINT) or SIGTERM. Only you and root can use it, unless options say otherwise.
    #[cfg(feature = "serve")]
    Serve(serve::ServeArgs),
    /// Show what mounts do, and have done so far
    ///
    /// Of one mount: reads, bytes delivered, use of the cache, bricks decoded and errors, since it was mounted. Without
    /// MOUNTPOINT a line for each mount of volfs on this machine; one whose daemon died is shown as such.
    Stats(stats::StatsArgs),
    /// Show what a disk cache holds, or empty it
    ///
    /// A disk cache is the folder that mounts of object stores were given with --disk-cache: it keeps what they have
    /// fetched. Prints for each volume how much of it is there, and when that was last used. Mounts that use the cache may
    /// go on in the meantime.
    Cache(cache::CacheArgs),
    /// Find out whether this machine can mount, and what to type if not
    ///
    /// Checks the FUSE device, the helper that mounts for ordinary users, the kernel, mounts whose daemon died, and the
    /// limit of open files. Changes nothing. The exit status is 1 if something prevents mounting.
    Doctor(doctor::DoctorArgs),
    /// Print what fits at the cursor, for the completion of shells
    ///
    /// Without words it prints the script that a shell needs.
    #[command(hide = true)]
    Complete(complete::CompleteArgs),
}

impl Cli {
    /// Reads the arguments, the first of which is the name of the program.
    fn read(args: Vec<OsString>) -> Result<Self, CliError> {
        let has_exec = args.iter().any(|word| word == "--exec");
        let mut args = with_command_word(args);
        let cli = Self::try_parse_from(&args).map_err(|mut error| {
            if has_exec && error.kind() == ErrorKind::MissingRequiredArgument {
                let tip = "--exec must come last: volfs mount SOURCE [MOUNTPOINT] --exec CMD...";
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            error
        })?;
        let Command::Mount(mount) = &cli.command else { return Ok(cli) };
        if mount.options.is_empty() {
            return Ok(cli);
        }
        // before what was typed: an option that was also typed by its own name has the value typed there, since the last one
        // counts
        args.splice(2..2, mount::options::arguments(&mount.options)?);
        let command = Self::command().mut_subcommand("mount", |mount| mount.args_override_self(true));
        let parsed = command.try_get_matches_from(args).and_then(|matches| Self::from_arg_matches(&matches));
        parsed.map_err(|error| mount::options::refused(&error))
    }
}

/// The hidden option that [`with_command_word`] adds, so that the command knows that mount(8) may be the caller.
const BY_MOUNT: &str = "--called-by-mount";

/// Inserts the word `mount`, which mount(8) leaves out, before two or more positional arguments if the first of them is
/// a source and not a command.
fn with_command_word(mut args: Vec<OsString>) -> Vec<OsString> {
    let cli = Cli::command();
    let is_command =
        |word: &str| word == "help" || cli.get_subcommands().any(|c| c.get_name_and_visible_aliases().contains(&word));
    let is_mount = {
        let words: Vec<_> = args.iter().skip(1).map(|word| word.to_string_lossy()).collect();
        let mount = cli.find_subcommand("mount");
        let positional = mount.map(|mount| Words::new(mount, words.iter().map(|word| &**word)).positional);
        positional.is_some_and(|words| words.len() >= 2 && !is_command(words[0]) && may_be_source(words[0]))
    };
    if is_mount {
        args.splice(1..1, ["mount".into(), BY_MOUNT.into()]);
    }
    args
}

/// Returns whether a word means a source rather than a misspelt command: it exists, or cannot be the name of a command.
fn may_be_source(word: &str) -> bool {
    let like_command = word.bytes().all(|c| c.is_ascii_alphabetic() || matches!(c, b'-' | b'_'));
    // the name alone is looked up: what it leads to might not answer
    !like_command || Path::new(word).symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, CliError> {
        let words = std::iter::once("volfs").chain(line.split_whitespace());
        Cli::read(words.map(OsString::from).collect()).map(|cli| cli.command)
    }

    fn mount(line: &str) -> mount::MountArgs {
        match read(line) {
            Ok(Command::Mount(args)) => args,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_help_has_an_example() {
        let mut cli = Cli::command();
        assert!(cli.render_long_help().to_string().contains("Example:"));
        for command in cli.get_subcommands_mut().filter(|c| c.get_name() != "help") {
            assert!(command.render_long_help().to_string().contains("Example:"), "{}", command.get_name());
        }
    }

    #[test]
    fn mount_needs_no_command_word() {
        for line in [
            "mount /S M -o rw,cache_size=1MiB",
            "/S M -o rw,cache_size=1MiB",
            "-o rw,cache_size=1MiB /S M",
            "/S M -orw,cache_size=1MiB",
            "/S -o rw M -o cache_size=1MiB",
            "--cache-size 1MiB /S M",
            "--cache-size=1MiB -- /S M",
            "-fo cache_size=1MiB /S M",
        ] {
            let args = mount(line);
            assert_eq!((args.source, args.mountpoint), ("/S".into(), Some("M".into())), "{line}");
        }
    }

    #[test]
    fn all_that_follows_exec_is_the_command() {
        for (line, mountpoint) in [
            ("mount S --exec cp -r -- --exec -o x --foreground", None),
            ("mount S M --threads 2 -o ro --exec cp -r -- --exec -o x --foreground", Some("M".into())),
        ] {
            let args = mount(line);
            assert_eq!((args.source, args.mountpoint, args.foreground), ("S".into(), mountpoint, false), "{line}");
            assert_eq!(args.exec.unwrap(), ["cp", "-r", "--", "--exec", "-o", "x", "--foreground"], "{line}");
        }
    }

    #[test]
    fn what_stands_behind_exec_is_missed_with_a_tip() {
        let tip = "--exec must come last";
        let error = read("mount --exec true S").unwrap_err().to_string();
        assert_eq!(error.lines().filter(|line| line.contains(tip)).count(), 1, "{error}");
        assert!(!read("mount S").unwrap_err().to_string().contains(tip));
    }

    #[test]
    fn other_commands_are_not_taken_for_a_mount() {
        assert!(matches!(read("umount --lazy M"), Ok(Command::Umount(args)) if args.lazy));
        assert!(matches!(read("info --json P"), Ok(Command::Info(args)) if args.json));
        assert!(matches!(read("unmount M"), Ok(Command::Umount(args)) if !args.lazy));
        assert!(matches!(read("list P"), Ok(Command::Ls(args)) if !args.json));
        assert!(matches!(read("ls --json P"), Ok(Command::Ls(args)) if args.json));
        assert!(matches!(read("cat P --region -5:,:,1 --at a=1 --at b=2"), Ok(Command::Cat(_))));
        assert!(matches!(read("stats M"), Ok(Command::Stats(args)) if !args.json));
        assert!(matches!(read("cache --check D"), Ok(Command::Cache(a)) if a.check && !a.clear));
        assert!(matches!(read("verify P Q"), Ok(Command::Verify(a)) if a.paths.len() == 2 && !a.quick));
        assert!(matches!(read("doctor"), Ok(Command::Doctor(args)) if !args.json));
        for (line, status) in [
            ("help mount", 0),
            ("--version", 0),
            ("mount --help", 0),
            ("", 2),
            ("nothing", 2),
            ("mount S", 2),
            ("mount S --exec", 2),
            ("mount S M -f --exec ls", 2),
            ("/S M --threads many", 2),
            ("/S M --cache-size 1QiB", 2),
            ("/S M extra", 2),
            ("unmout M", 2),
            ("moutn S M", 2),
            ("verfy P Q", 2),
            ("umount", 2),
            ("ls", 2),
            ("cat P --region 1;2", 2),
            ("cat P --at inline", 2),
            ("cat P --format png", 2),
            ("doctor P", 2),
            ("verify", 2),
            ("cache", 2),
            ("cache D --clear --check", 2),
            ("verify P --threads 0", 2),
        ] {
            assert_eq!(read(line).unwrap_err().exit_status(), status, "{line}");
        }
    }

    #[test]
    fn a_misspelt_command_is_no_source_to_mount() {
        for (line, meant) in
            [("moutn S M", "mount"), ("unmout M", "unmount"), ("verfy P Q", "verify"), ("lst P -o ro", "list")]
        {
            let error = read(line).unwrap_err().to_string();
            assert!(
                error.contains("unrecognized subcommand") && error.contains(&format!("'{meant}'")),
                "{line}: {error}"
            );
        }
        // what is there may be mounted, whatever its name
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(mount(&format!("{} M", folder.path().display())).source, folder.path());
    }
}
