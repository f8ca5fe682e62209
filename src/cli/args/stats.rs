//! The arguments of `volfs stats`.

use std::path::PathBuf;

use clap::Args;

/// The arguments of `volfs stats`.
#[derive(Debug, Args)]
#[command(after_help = STATS_EXAMPLE)]
pub struct StatsArgs {
    /// Where the mount is
    pub mountpoint: PathBuf,

    /// Print the mount's .volfs/status.json
    #[arg(long)]
    pub json: bool,
}

const STATS_EXAMPLE: &str = "\
Example:
  volfs stats /mnt/vol
  watch -n 1 volfs stats /mnt/vol
  volfs stats --json /mnt/vol | jq .counters.errors";
