//! The arguments of `volfs cache`.

use std::path::PathBuf;

use clap::Args;

/// The arguments of `volfs cache`.
#[derive(Debug, Args)]
#[command(after_help = CACHE_EXAMPLE)]
pub(crate) struct CacheArgs {
    /// The folder of the cache
    #[arg(value_name = "DIR")]
    pub cache_folder: PathBuf,

    /// Remove all that is in it
    ///
    /// The folder stays, and so does whatever in it is not of the cache.
    #[arg(long, conflicts_with = "check")]
    pub clear: bool,

    /// Read all of it, and compare the checksums
    ///
    /// A mount does that with what it reads: bad files are fetched anew. So nothing needs to be done about them.
    #[arg(long)]
    pub check: bool,

    /// Print JSON for programs
    ///
    /// files and bytes, oldest and newest (when they were last used, in seconds since 1970), the same for each volume
    /// under `datasets` with its store and name, and under `bad` for files that are not as they should be, with the
    /// first of their names; `foreign` counts names that are not of the cache. With --clear: `cleared`, with files and
    /// bytes, and `foreign`.
    #[arg(long)]
    pub json: bool,
}

const CACHE_EXAMPLE: &str = "\
Example:
  volfs cache /scratch/volfs
  volfs cache --check /scratch/volfs
  volfs cache --clear /scratch/volfs
  volfs cache --json /scratch/volfs | jq .bytes";
