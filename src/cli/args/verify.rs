//! The arguments of `volfs verify`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::zfp::ZfpDecoder;
use crate::source::StoreOption;

/// The arguments of `volfs verify`.
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLE)]
pub(crate) struct VerifyArgs {
    /// Folders of volumes, searched in depth, or single volumes; also inside a mount, or URLs (s3://BUCKET/KEY)
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Check headers and tables alone, and decode nothing
    ///
    /// Finds bricks that overlap or lie beyond the end of the file, and levels that are missing, but no damage within a
    /// brick.
    #[arg(long)]
    pub quick: bool,

    /// Print one JSON object
    ///
    /// `datasets` has an object for each volume, with its layers, the bricks of each level, what is damaged, and what
    /// could not be read; `totals` has the sums. docs/troubleshooting.md describes all keys.
    #[arg(long)]
    pub json: bool,

    /// List all that is bad, and not only the first entries of each volume
    #[arg(long)]
    pub all: bool,

    /// Threads that read and decode [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,

    /// The decoder of ZFP-compressed bricks
    ///
    /// Both return the same samples, and refuse the same bricks. That of volfs is faster; libzfp is there for whoever
    /// wants to compare.
    #[arg(long, value_name = "DECODER", value_enum, default_value_t)]
    pub zfp: ZfpDecoder,

    /// Follow symbolic links that lead out of PATH
    #[arg(long)]
    pub follow_links: bool,

    /// An option of the object store, for a SOURCE that is a URL; may be repeated
    ///
    /// For instance region=eu-west-1, endpoint=http://127.0.0.1:9000, allow_http=true, anonymous=true (public data) or
    /// timeout=60s. Credentials are taken from the environment, by the names that the tools of the provider use, and never
    /// from the command line. docs/object-stores.md lists all.
    #[arg(long, value_name = "NAME=VALUE")]
    pub store_option: Vec<StoreOption>,
}

const VERIFY_EXAMPLE: &str = "\
Example:
  volfs verify ~/surveys
  volfs verify --quick ~/surveys/north.zgy ~/cells
  volfs verify --json ~/surveys | jq -r '.datasets[] | select(.bad) | .path'

Exit status: 0 all can be read, 1 something is bad or could not be read,
2 wrong usage, 129, 130 or 143 if interrupted by SIGHUP (the terminal was
closed), SIGINT (Ctrl-C) or SIGTERM: what was found so far is printed.";
