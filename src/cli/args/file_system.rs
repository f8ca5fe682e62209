//! The options of `volfs mount` and `volfs serve` that say what is shown, and with what means.

use std::path::PathBuf;

use clap::Args;

use super::mount_options::{cache_size, disk_cache_size, quality, threads};
use super::views::{self, Views, views};
use super::zfp::ZfpDecoder;
use crate::cli::text::size::Size;
use crate::source::StoreOption;

/// What is shown, and with what means.
#[derive(Debug, Args)]
pub(crate) struct FileSystemArgs {
    /// Memory for decoded bricks, as 512MiB or 2GiB
    ///
    /// Takes KiB, MiB and GiB; K, M and G mean the same, a plain number means bytes. [default: a quarter of the memory
    /// allowed to this process, control groups and limits (ulimit -v, -d) included, at most 4GiB]
    #[arg(long, value_name = "SIZE", value_parser = cache_size)]
    pub cache_size: Option<Size>,

    /// Threads that decode
    ///
    /// [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,

    /// Follow symbolic links that lead out of SOURCE
    ///
    /// Links that stay below SOURCE are always followed, others are not shown.
    #[arg(long)]
    pub follow_links: bool,

    /// An option of the object store, for a SOURCE that is a URL; may be repeated
    ///
    /// For instance region=eu-west-1, endpoint=http://127.0.0.1:9000, allow_http=true, anonymous=true (public data) or
    /// timeout=60s. Credentials are taken from the environment, by the names that the tools of the provider use, and never
    /// from the command line. docs/object-stores.md lists all.
    #[arg(long, value_name = "NAME=VALUE")]
    pub store_option: Vec<StoreOption>,

    /// Keep what an object store has sent in this folder, for other mounts and for later
    ///
    /// The folder must be empty, or a disk cache already; it is made if it does not exist. Only this user may read it.
    /// Several mounts may share it. Delete from it with: volfs cache --clear DIR
    #[arg(long, value_name = "DIR")]
    pub disk_cache: Option<PathBuf>,

    /// Disk space that --disk-cache may take, as 500GiB
    ///
    /// For all mounts together that share the folder. What was not used for the longest time goes first. [default: 10GiB]
    #[arg(long, value_name = "SIZE", value_parser = disk_cache_size)]
    pub disk_cache_size: Option<Size>,

    /// Decode only a part of the data: 0 to 15, of which 0 is the best quality
    ///
    /// For wavelet-coded VDS layers: level 0 leaves out the data that makes lossy samples exact, and each further level
    /// one more bit plane. Less is read and less is decoded, for a coarse look at slow or remote data. Other layers are
    /// not affected. [default: decode everything]
    #[arg(long, value_name = "LEVEL", value_parser = quality)]
    pub quality: Option<u8>,

    /// The decoder of ZFP-compressed bricks
    ///
    /// Both return the same samples, and refuse the same bricks. That of volfs is faster; libzfp is there for whoever
    /// wants to compare. [default: volfs]
    #[arg(long, value_name = "DECODER", value_enum)]
    pub zfp: Option<ZfpDecoder>,

    /// Show these views only
    #[arg(long, value_name = "LIST", value_parser = views, long_help = views::help())]
    pub views: Option<Views>,
}
