//! The arguments of `volfs umount`.

use std::path::PathBuf;

use clap::Args;

/// The arguments of `volfs umount`.
#[derive(Debug, Args)]
#[command(after_help = UMOUNT_EXAMPLE)]
pub(crate) struct UmountArgs {
    /// Where the mount is
    pub mountpoint: PathBuf,

    /// Take the mount away even if it is in use
    ///
    /// It is gone for all programs at once; those that have a file of it open may read on until they close it.
    #[arg(long)]
    pub lazy: bool,
}

const UMOUNT_EXAMPLE: &str = "\
Example:
  volfs umount ~/vol";
