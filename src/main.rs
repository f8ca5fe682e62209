//! The binary: does what it is asked for, prints an error, and ends with the right status.

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
