//! The binary: runs the command line, prints an error, and returns the exit status.

use std::process::ExitCode;

fn main() -> ExitCode {
    match volfs::cli::run(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.print();
            ExitCode::from(error.exit_status())
        }
    }
}
