//! The arguments of `volfs mount`.

use std::path::PathBuf;

use clap::Args;

use super::mount_options::{MountOption, cache_size, threads};
use crate::cli::text::size::Size;

/// The arguments of `volfs mount`.
#[derive(Debug, Args)]
#[command(after_help = MOUNT_EXAMPLE)]
pub struct MountArgs {
    /// A folder of volumes, searched in depth, or one volume
    pub source: PathBuf,

    /// An empty folder, outside SOURCE, that will show them
    pub mountpoint: PathBuf,

    /// Stay in the foreground and log to the terminal
    ///
    /// Ctrl-C (SIGINT) or SIGTERM unmounts.
    #[arg(short, long)]
    pub foreground: bool,

    /// Memory for decoded bricks, as 512MiB or 2GiB
    ///
    /// Takes KiB, MiB and GiB; K, M and G mean the same, a plain number means bytes. [default: a quarter of the memory
    /// allowed to this process, control groups included, at most 4GiB]
    #[arg(long, value_name = "SIZE", value_parser = cache_size)]
    pub cache_size: Option<Size>,

    /// Threads that decode
    ///
    /// [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,

    /// Bypass the kernel's page cache
    ///
    /// Faster for programs that stream a volume once with reads of 256 KiB and more; slower for programs that read
    /// data again or in small pieces.
    #[arg(long)]
    pub direct_io: bool,

    /// Let other users read the mount
    ///
    /// Unless you are root, /etc/fuse.conf must have the line `user_allow_other`.
    #[arg(long)]
    pub allow_other: bool,

    /// Log to the end of this file
    ///
    /// [default: the system's log; with --foreground the terminal]. The environment variable RUST_LOG sets the level:
    /// error, warn, info (the default), debug or trace.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,

    /// Follow symbolic links that lead out of SOURCE
    ///
    /// Links that stay below SOURCE are always followed, others are not shown.
    #[arg(long)]
    pub follow_links: bool,

    /// Decode only a part of the data: 0 to 15, of which 0 is the best quality
    ///
    /// For wavelet-coded VDS layers: level 0 leaves out the data that makes lossy samples exact, and each further level
    /// one more bit plane. Less is read and less is decoded, for a coarse look at slow or remote data. Other layers are
    /// not affected. [default: decode everything]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..16))]
    pub quality: Option<u8>,

    /// The caller is mount(8): a line of /etc/fstab that is mounted already is no failure
    #[arg(long, hide = true)]
    pub called_by_mount: bool,

    /// Options as /etc/fstab has them, with commas between
    ///
    /// With an effect: allow_other, direct_io, cache_size=SIZE, threads=N, log_file=FILE. Accepted without an effect,
    /// since the mount is read-only or other programs act on them: ro, rw, dev, nodev, suid, nosuid, exec, noexec,
    /// noauto, user, nofail, _netdev, x-*. An option that is also given by its own name has the value given there.
    #[arg(short = 'o', long = "options", value_name = "OPTIONS")]
    #[arg(value_delimiter = ',', value_parser = MountOption::read)]
    pub options: Vec<MountOption>,
}

const MOUNT_EXAMPLE: &str = "\
Example:
  mkdir -p ~/vol
  volfs mount --cache-size 2GiB ~/surveys ~/vol
  ls ~/vol/north.zgy/data";
