//! The binary: runs the command line.

use std::process::ExitCode;

use volfs::ReservingAllocator;

/// Memory that runs out fails requests before it ends the process.
#[global_allocator]
static ALLOCATOR: ReservingAllocator = ReservingAllocator;

fn main() -> ExitCode {
    volfs::run(std::env::args_os())
}
