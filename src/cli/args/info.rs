//! The arguments of `volfs info`.

use std::path::PathBuf;

use clap::Args;

use crate::source::StoreOption;

/// The arguments of `volfs info`.
#[derive(Debug, Args)]
#[command(after_help = INFO_EXAMPLE)]
pub(crate) struct InfoArgs {
    /// The volume: a file, or the folder that is the volume; any path inside a mount that shows it, or a URL
    pub path: PathBuf,

    /// Print JSON for programs
    ///
    /// The object that a mount has as dataset.json, and under `levels`, for each layer, the objects of lod0.json,
    /// lod1.json and so on.
    #[arg(long)]
    pub json: bool,

    /// An option of the object store, for a SOURCE that is a URL; may be repeated
    ///
    /// For instance region=eu-west-1, endpoint=http://127.0.0.1:9000, allow_http=true, anonymous=true (public data) or
    /// timeout=60s. Credentials are taken from the environment, by the names that the tools of the provider use, and never
    /// from the command line. docs/object-stores.md lists all.
    #[arg(long, value_name = "NAME=VALUE")]
    pub store_option: Vec<StoreOption>,
}

const INFO_EXAMPLE: &str = "\
Example:
  volfs info ~/surveys/north.zgy
  volfs info --json ~/surveys/north.zgy | jq .levels.data[0].shape";
