//! The command line: [`args`] has what was typed, each command's own file what it means.

pub mod args;
mod chart;
mod error;
mod holders;
mod info;
mod info_text;
mod limits;
mod machine;
mod mount;
mod mount_options;
mod mountpoint;
mod output;
mod page;
mod patience;
mod printable;
mod size;
mod status;
mod summary;
mod umount;
mod value;

use std::ffi::OsString;

use args::{Cli, Command};
pub use error::CliError;

/// Does what the arguments ask for. `args` begins with the name of the program.
///
/// # Errors
/// [`CliError`], which knows the exit status and prints as one line.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Result<(), CliError> {
    match Cli::read(args.into_iter().collect())?.command {
        Command::Mount(args) => mount::run(args),
        Command::Umount(args) => umount::run(&args),
        Command::Info(args) => info::run(&args),
    }
}
