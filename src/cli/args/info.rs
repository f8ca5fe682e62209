//! The arguments of `volfs info`.

use std::path::PathBuf;

use clap::Args;

/// The arguments of `volfs info`.
#[derive(Debug, Args)]
#[command(after_help = INFO_EXAMPLE)]
pub struct InfoArgs {
    /// The volume: a file, or the folder that is the volume; or any path inside a mount that shows it
    pub path: PathBuf,

    /// Print JSON for programs
    ///
    /// The object that a mount has as dataset.json, and under `levels`, for each layer, the objects of lod0.json,
    /// lod1.json and so on.
    #[arg(long)]
    pub json: bool,
}

const INFO_EXAMPLE: &str = "\
Example:
  volfs info ~/surveys/north.zgy
  volfs info --json ~/surveys/north.zgy | jq .levels.data[0].shape";
