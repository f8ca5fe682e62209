//! The arguments of `volfs cat`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::slices::{At, Slices};
use super::zfp::ZfpDecoder;
use crate::source::StoreOption;

/// The arguments of `volfs cat`.
#[derive(Debug, Args)]
#[command(after_help = CAT_EXAMPLE)]
pub(crate) struct CatArgs {
    /// The volume: a file, or the folder that is the volume; also inside a mount, or a URL
    ///
    /// Inside a mount the folder of a layer chooses that layer, and a file such as lod1.raw also the level.
    pub path: PathBuf,

    /// The layer [default: the first, or that of PATH]
    ///
    /// In any case, and by as much of the name as is unambiguous: `ampl` is Amplitude.
    #[arg(long, value_name = "NAME")]
    pub layer: Option<String>,

    /// The level of detail; 0 is the finest [default: 0, or that of PATH]
    #[arg(long, value_name = "N")]
    pub lod: Option<usize>,

    /// The part to print, by index: a slice for each axis, in the order of the array [default: all]
    ///
    /// As in Python: `a:b` is a to b - 1, `a:` and `:b` go to the end and from the beginning, `:` is all, a single
    /// number is one position (its axis stays, with length 1), and negative numbers count from the end. Axes without a
    /// slice are whole. Unlike in Python, an index beyond the axis is an error.
    #[arg(long, value_name = "SLICES", value_parser = Slices::read, allow_hyphen_values = true)]
    pub region: Option<Slices>,

    /// The part to print along one axis, by what the survey calls it; may be repeated
    ///
    /// `inline=1234` is one line, `inline=1234:1300` all lines from the first to the second, both included;
    /// `inline=1234:` goes to the last. `volfs info` shows the axes, their numbers and their steps.
    #[arg(long, value_name = "AXIS=VALUE", value_parser = At::read)]
    pub at: Vec<At>,

    /// The form of the output
    #[arg(long, value_enum, default_value_t = Format::Raw)]
    pub format: Format,

    /// Decode only a part of the data: 0 to 15, of which 0 is the best quality
    ///
    /// For wavelet-coded VDS layers: level 0 leaves out the data that makes lossy samples exact, and each further level
    /// one more bit plane. Less is read and less is decoded, for a coarse look at slow or remote data. Other layers are
    /// not affected. [default: decode everything]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..16))]
    pub quality: Option<u8>,

    /// The decoder of ZFP-compressed bricks
    ///
    /// Both return the same samples, and refuse the same bricks. That of volfs is faster; libzfp is there for whoever
    /// wants to compare.
    #[arg(long, value_name = "DECODER", value_enum, default_value_t)]
    pub zfp: ZfpDecoder,

    /// Write to this file instead of standard output
    ///
    /// The file is there once it is complete: if the command fails or is interrupted, nothing is left behind, and a file
    /// of that name stays as it was. Only a file that has other names too (hard links), an access control list, or
    /// another owner or group than a new file would have is written in place: it is the same file afterwards, but empty
    /// if the command fails or is interrupted.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print samples even to a terminal
    #[arg(long)]
    pub force: bool,

    /// An option of the object store, for a SOURCE that is a URL; may be repeated
    ///
    /// For instance region=eu-west-1, endpoint=http://127.0.0.1:9000, allow_http=true, anonymous=true (public data) or
    /// timeout=60s. Credentials are taken from the environment, by the names that the tools of the provider use, and never
    /// from the command line. docs/object-stores.md lists all.
    #[arg(long, value_name = "NAME=VALUE")]
    pub store_option: Vec<StoreOption>,
}

/// What `volfs cat` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Nothing but the samples
    Raw,
    /// The samples behind a NumPy header, which has their type and shape
    Npy,
}

const CAT_EXAMPLE: &str = "\
Example:
  volfs cat ~/surveys/north.zgy --at inline=1234 -o line.raw
  volfs cat ~/surveys/north.zgy --region 0:64,:,-1 --format npy > part.npy
  volfs cat ~/surveys/north.zgy --lod 2 | sha256sum
  volfs cat ~/vol/north.vds/Amplitude/lod1.raw --at inline=1234 | wc -c

Exit status: 0 done, 1 failed, 2 wrong usage; 129, 130 or 143 if interrupted
by SIGHUP (the terminal was closed), SIGINT (Ctrl-C) or SIGTERM.";
