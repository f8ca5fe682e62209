//! The binary: runs the command line, prints an error, and returns the exit status.

use std::process::ExitCode;

use volfs::memory::ReservingAllocator;

/// Memory that runs out fails requests before it ends the process.
#[global_allocator]
static ALLOCATOR: ReservingAllocator = ReservingAllocator;

fn main() -> ExitCode {
    match volfs::cli::run(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.print();
            ExitCode::from(error.exit_status())
        }
    }
}
