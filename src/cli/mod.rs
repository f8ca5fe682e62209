//! The command line.
//!
//! * [`args`]: the arguments of each command, with the help texts.
//! * [`commands`]: one file for each command, with its helpers in the folder of the same name.
//! * [`machine`]: the machine's limits, and the permission to mount.
//! * [`mounts`]: mount points, and the state and users of existing mounts.
//! * [`text`]: layout, alignment and escaping of what is printed.
//! * [`output`] and [`error`]: standard output, and the one line that a failed command prints.
//! * [`chosen_source`]: SOURCE as it was typed, checked: a path or a URL.
//! * [`dataset_at`]: the dataset that a path means, also one inside a mount.
//! * [`deadline`]: work on a source or mount that may hang.
//! * [`disk_cache_folder`]: the folder that a mount is to have as its disk cache.
//! * [`file_system_options`]: the options that a mount and a server share, checked.
//! * [`progress_bar`] and [`interrupt`]: what long commands show, and how a signal ends them.
//! * [`timeout`]: timeouts within a process.

pub(crate) mod args;
mod chosen_source;
mod commands;
mod dataset_at;
mod deadline;
mod disk_cache_folder;
mod error;
mod file_system_options;
mod interrupt;
mod machine;
mod mounts;
mod output;
mod progress_bar;
mod text;
mod timeout;

use std::ffi::OsString;

use crate::source::raise_descriptor_limit;
use args::{Cli, Command};
pub(crate) use commands::complete::script as completion_script;
pub(crate) use error::CliError;

/// Runs the command that the arguments name. `args` begins with the name of the program. [`CliError`] knows the exit
/// status and prints as one line.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> Result<(), CliError> {
    let command = Cli::read(args.into_iter().collect())?.command;
    // a mount's daemon raises its own, since a command that `mount --exec` runs has to have the limit of its caller
    let stays = matches!(
        command,
        Command::Mount(_) | Command::Umount(_) | Command::Stats(_) | Command::Doctor(_) | Command::Complete(_)
    );
    if !stays {
        raise_descriptor_limit();
    }
    match command {
        Command::Mount(args) => commands::mount::run(args),
        Command::Umount(args) => commands::umount::run(&args),
        Command::Ls(args) => commands::ls::run(&args),
        Command::Info(args) => commands::info::run(&args),
        Command::Cat(args) => commands::cat::run(&args),
        Command::Verify(args) => commands::verify::run(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => commands::serve::run(args),
        Command::Stats(args) => commands::stats::run(&args),
        Command::Cache(args) => commands::cache::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Complete(args) => commands::complete::run(&args),
    }
}
