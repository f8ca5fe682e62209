//! The arguments of `volfs stats`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// The arguments of `volfs stats`.
#[derive(Debug, Args)]
#[command(after_help = STATS_EXAMPLE)]
pub(crate) struct StatsArgs {
    /// Where the mount is, or any path inside it [default: all mounts]
    pub mountpoint: Option<PathBuf>,

    /// Show what happens now, again after each interval [default: 1 second]
    ///
    /// Reads, bricks and bytes per second, and the hit rate of the interval, of the mount and of each dataset that was
    /// read: in place on a terminal, otherwise in lines for each interval, with at most five datasets a mount. Ctrl-C
    /// ends it.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    #[arg(value_parser = interval)]
    pub watch: Option<Duration>,

    /// Print JSON for programs
    ///
    /// With MOUNTPOINT the mount's .volfs/status.json; without, an object with a list `mounts`, of which each has
    /// mountpoint, source, state (alive, dead, silent, denied, error) and status. With --watch an object in a line for
    /// each mount and interval: `seconds`, and under `increase` how much each counter grew in them, without the reads
    /// of this command; the same of each dataset under `datasets`.
    #[arg(long)]
    pub json: bool,
}

/// Reads an interval in seconds.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "give seconds, from 0.1 to 86400".to_owned())
}

const STATS_EXAMPLE: &str = "\
Example:
  volfs stats
  volfs stats /mnt/vol
  volfs stats --watch /mnt/vol
  volfs stats --watch=10 --json >> volfs.log
  volfs stats --json /mnt/vol | jq .counters.errors";
