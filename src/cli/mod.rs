//! The command line: [`args`] has what was typed, each command's own file what it means.

pub mod args;
mod cat;
mod chart;
mod doctor;
mod error;
mod facts;
mod findings;
#[cfg(test)]
mod findings_tests;
mod holders;
mod info;
mod info_text;
mod limits;
mod listing;
mod ls;
mod machine;
mod mount;
mod mount_options;
mod mountpoint;
mod output;
mod page;
mod parts;
mod patience;
mod printable;
mod read_args;
mod selection;
mod size;
mod stats;
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
        Command::Ls(args) => ls::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Cat(args) => cat::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Doctor(args) => doctor::run(&args),
    }
}
