//! The arguments of `volfs ls`.

use std::path::PathBuf;

use clap::Args;

use crate::source::StoreOption;

/// The arguments of `volfs ls`.
#[derive(Debug, Args)]
#[command(after_help = LS_EXAMPLE)]
pub(crate) struct LsArgs {
    /// A folder of volumes, searched in depth, or one volume; also inside a mount, or a URL (s3://BUCKET/KEY)
    pub source: PathBuf,

    /// Print a JSON list with an object for each layer
    ///
    /// path, format, layer, shape, dtype, codec, lods (their number) and size (bytes at full detail); `mag` and
    /// `voxel_size` where a dataset has them. `error` is null, or says why a dataset or a layer cannot be shown.
    #[arg(long)]
    pub json: bool,

    /// Follow symbolic links that lead out of SOURCE
    ///
    /// Links that stay below SOURCE are always followed, others are not shown: as in a mount.
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

const LS_EXAMPLE: &str = "\
Example:
  volfs ls ~/surveys
  volfs ls --json ~/surveys | jq -r '.[] | select(.codec == \"zfp\") | .path'";
