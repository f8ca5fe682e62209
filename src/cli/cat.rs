//! `volfs cat`: writes a box in one of several forms, chunk by chunk, while later chunks are being decoded.

mod chunks;
mod output;
mod selection;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use indicatif::ProgressBar;

use self::chunks::{ChunkedBox, Prefetch};
use self::output::{Destination, Progress};
use self::selection::{At, Slices, select};
use super::deadline;
use super::error::CliError;
use super::file_system::{MAX_QUALITY, StoreArgs};
use super::interrupt::on_signal;
use super::machine::{default_cache_size, default_threads};
use super::output::{bar, follow, note};
use super::source::DatasetAt;
use super::text::{Size, choose, escaped_path, number_in, rate};
use crate::array::{ReadError, Reader};
use crate::catalog::OpenDataset;
use crate::format::{Array, Layer};
use crate::memory::BufferPool;
use crate::pool::Pool;
use crate::view::{BoxFile, BoxOf, Content, Form, LayerRef, find_layer, registry};
use crate::volume::{ArrayInfo, Region};

#[derive(Debug, Args)]
#[command(after_help = CAT_EXAMPLE)]
pub(super) struct CatArgs {
    /// The volume: a file, or the folder that is the volume; also inside a mount, or a URL
    ///
    /// Inside a mount the folder of a layer chooses that layer, and a file such as lod1.raw also the level.
    path: PathBuf,

    /// The layer [default: the first, or that of PATH]
    ///
    /// In any case, and by as much of the name as is unambiguous: `ampl` is Amplitude. `data` is the first layer of a
    /// volume without one of that name.
    #[arg(long, value_name = "NAME")]
    layer: Option<String>,

    /// The level of detail; 0 is the finest [default: 0, or that of PATH]
    #[arg(long, value_name = "N")]
    lod: Option<usize>,

    /// The part to print, by index: a slice for each axis, in the order of the array [default: all]
    ///
    /// As in Python: `a:b` is a to b - 1, `a:` and `:b` go to the end and from the beginning, `:` is all, a single
    /// number is one position (its axis stays, with length 1), and negative numbers count from the end. Axes without a
    /// slice are whole. Unlike in Python, an index beyond the axis is an error.
    #[arg(long, value_name = "SLICES", allow_hyphen_values = true, value_parser = Slices::read)]
    region: Option<Slices>,

    /// The part to print along one axis, by what the survey calls it; may be repeated
    ///
    /// `inline=1234` is one line, `inline=nearest:1234` the nearest line, and `inline=1234:1300` all lines from one
    /// number to the other, both included; `inline=1234:` goes to the last. Numbers are in the axis' unit, or have one:
    /// `sample=1.2s:1.6s`, `z=0.1um`. `volfs info` shows the axes, their numbers, steps and units.
    #[arg(long, value_name = "AXIS=VALUE", value_parser = At::read)]
    at: Vec<At>,

    /// The form of the output [default: by the extension of --output, else raw]
    ///
    /// `raw` is the samples only, `npy` a NumPy file. `sgy` is SEG-Y with the line numbers and coordinates of the box,
    /// for surveys; it has values. `tif` is a stack of images with the size of voxels (ImageJ). `csv` has a row for each
    /// sample, with its positions, and the world coordinates of surveys.
    #[arg(long, value_name = "FORM", value_parser = PossibleValuesParser::new(Form::NAMES))]
    format: Option<String>,

    /// Write values instead of stored samples, where they differ
    ///
    /// Scaled integers become float32, and samples that mean "no data" NaN (nothing in a CSV file); float64 stays as it
    /// is.
    #[arg(long)]
    scaled: bool,

    /// Decode only a part of the data: 0 to 15; 0 is the best quality
    ///
    /// For wavelet-coded VDS layers: level 0 leaves out the data that makes lossy samples exact, and each further level
    /// one more bit plane. Less is read and decoded, for a coarse look at slow or remote data. Other layers are not
    /// affected. [default: decode everything]
    #[arg(long, value_name = "LEVEL", value_parser = number_in(0..=MAX_QUALITY))]
    quality: Option<u8>,

    /// Write to this file instead of standard output
    ///
    /// The file appears once it is complete: if the command fails or is interrupted, nothing is left, and a file of that
    /// name stays as it was. Only a file that has other names too (hard links), an access control list, or another owner
    /// or group than a new file would have is written in place: it stays the same file, but is empty if the command fails
    /// or is interrupted.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print samples even to a terminal
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    store: StoreArgs,
}

const CAT_EXAMPLE: &str = "\
Example:
  volfs cat ~/surveys/north.zgy --at inline=1234:1300 -o part.sgy
  volfs cat ~/surveys/north.zgy --region 0:64,:,-1 --format npy > part.npy
  volfs cat ~/cells --at z=nearest:0.1um --at x=1um:2um -o part.tif
  volfs cat ~/surveys/north.zgy --lod 2 | sha256sum
  volfs cat ~/vol/north.vds/Amplitude/lod1.raw --at inline=1234 | wc -c

Exit status: 0 done, 1 failed, 2 wrong usage; 129, 130 or 143 if interrupted
by SIGHUP (the terminal was closed), SIGINT (Ctrl-C) or SIGTERM.";

/// Bytes of idle buffers that the pool keeps, besides those of a chunk.
const IDLE_BYTES: u64 = 8 << 20;

/// Bytes of samples that become rows of a table at a time.
const OF_ROWS: usize = 64 << 10;

const TEMPLATE: &str = "{spinner} [{bar:24}] {percent}% of {msg}, {eta} left";

/// Writes samples to standard output or to a file. A closed pipe ends the output without an error; a signal removes an
/// incomplete file, or empties it if it cannot be replaced.
pub(super) fn run(args: &CatArgs) -> Result<(), CliError> {
    // before there are threads
    deadline::check_local(&args.path, || drop(DatasetAt::open(&args.path, &[], None)))?;
    let (progress, bar) = (Arc::<Progress>::default(), bar(TEMPLATE));
    let (interrupted, shown_bar) = (Arc::clone(&progress), bar.clone());
    on_signal(move || {
        shown_bar.finish_and_clear();
        interrupted.interrupt().iter().for_each(|words| note(words));
    });
    let found = DatasetAt::open(&args.path, &args.store.store_option, args.quality)?;
    let (index, layer, array) = chosen(args, &found).map_err(CliError::argument)?;
    let info = array.info();
    let region = select(info, args.region.as_ref(), &args.at).map_err(CliError::argument)?;
    let form = form(args);
    let of_layer = LayerRef { open: &found.open, layer: index, views: registry() };
    let file = BoxFile::new(of_layer, info.lod, BoxOf { region, form, scaled: args.scaled });
    let file = file.map_err(CliError::argument)?;
    let total = file.rows.as_ref().map_or(file.content.len(), |rows| rows.estimated_bytes());
    let mut out = Destination::open(args.output.as_deref(), total, &found.path, args.force, &progress)?;
    remark(&found, info, args.scaled).iter().for_each(|text| note(text));
    let draw = move |bar: &ProgressBar, since: Duration| {
        let written = progress.written.get();
        bar.set_length(total);
        bar.set_message(format!("{}, {}", Size(total), rate(written, since)));
        bar.set_position(written);
    };
    let shown = out.is_file().then(|| follow(&bar, draw));
    let damaged = |error| damaged(&found.path, layer, info, error);
    if copy(array, region, file, &mut out, damaged)? {
        out.finish()?;
    }
    drop(shown);
    Ok(())
}

/// Chooses an array by --layer and --lod, or by a path that is a layer or a level inside a mount.
fn chosen<'a>(args: &CatArgs, found: &'a DatasetAt) -> Result<(usize, &'a Layer, &'a Arc<dyn Array>), String> {
    let named = args.layer.as_deref().map(|name| layer(&found.open, name)).transpose()?;
    let index = agreeing("--layer", named, found.layer)?.unwrap_or(0);
    let no_layer = || "the volume has no layer that can be shown; see volfs info".to_owned();
    let layer = found.open.dataset.layers().get(index).ok_or_else(no_layer)?;
    if let (None, Some(file)) = (found.lod, &found.file) {
        return Err(format!(
            "{file} has no samples of a level; give a file lodN.*, or the folder of a layer or volume"
        ));
    }
    let lod = agreeing("--lod", args.lod, found.lod)?.unwrap_or(0);
    let array = layer.levels.get(lod).ok_or_else(|| {
        let last = layer.levels.len().saturating_sub(1);
        format!("--lod: there is no LOD {lod}; layer {} has LOD 0 to {last}", layer.name)
    })?;
    Ok((index, layer, array))
}

/// Returns the form that is named, or that of the output's extension.
fn form(args: &CatArgs) -> Form {
    let extension = args.output.as_deref().and_then(Path::extension).and_then(OsStr::to_str);
    args.format.as_deref().or(extension).and_then(Form::named).unwrap_or(Form::Raw)
}

/// Returns what a user should know about the samples of an array whose file the path is.
fn remark(found: &DatasetAt, info: &ArrayInfo, scaled: bool) -> Option<String> {
    match found.file.as_ref()? {
        file if file.contains(".by-") => {
            let axes: Vec<&str> = info.axes.iter().map(|axis| axis.name.as_str()).collect();
            Some(format!("the samples come as [{}], not turned as in {file}", axes.join(", ")))
        }
        file if file.contains(".float32.") && !scaled => {
            Some(format!("the samples come as stored, not as float32 as in {file}"))
        }
        _ => None,
    }
}

/// Returns what an option or the path says, if they do not contradict each other.
fn agreeing(option: &str, typed: Option<usize>, by_path: Option<usize>) -> Result<Option<usize>, String> {
    match (typed, by_path) {
        (Some(one), Some(other)) if one != other => Err(format!("{option} contradicts the path; give one of them")),
        _ => Ok(typed.or(by_path)),
    }
}

fn layer(open: &OpenDataset, name: &str) -> Result<usize, String> {
    let names: Vec<&str> = open.dataset.layers().iter().map(|layer| layer.name.as_str()).collect();
    // a mount finds folders, whose names are those of layers, percent-encoded
    let same = names.iter().position(|layer| *layer == name);
    if let Some(found) = same.or_else(|| find_layer(open, name)) {
        return Ok(found);
    }
    if let Some(hidden) = open.dataset.hidden().iter().find(|layer| layer.name.eq_ignore_ascii_case(name)) {
        return Err(format!("--layer {} cannot be shown: {}", hidden.name, hidden.reason));
    }
    choose("layer", &names, name).map_err(|error| format!("--layer: {error}"))
}

/// Writes the file of a box, chunk by chunk, while the next chunks are being read. Returns `false` once the reader is
/// gone.
fn copy(
    array: &Arc<dyn Array>,
    region: Region,
    file: BoxFile,
    out: &mut Destination,
    damaged: impl Fn(ReadError) -> CliError,
) -> Result<bool, CliError> {
    let memory = default_cache_size();
    let max_chunk = memory / 8;
    let chunks = ChunkedBox::new(&**array, region, max_chunk);
    // the parts of a computed file end near those of the box
    let shares = chunks.share_bricks() || matches!(file.content, Content::Computed(_));
    let cache = if shares { memory / 2 } else { 0 };
    let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let buffers = BufferPool::for_bricks(bytes(max_chunk + IDLE_BYTES), 0);
    let reader = Reader::new(bytes(cache), default_threads(), buffers, Pool::new(), Arc::default());
    let BoxFile { content, mut rows } = file;
    for part in Prefetch::new(reader, content, chunks) {
        let part = part.map_err(&damaged)?;
        // as text a sample takes many times its bytes
        for piece in part.chunks(if rows.is_some() { OF_ROWS } else { part.len() }) {
            let text = rows.as_mut().map(|rows| rows.write(piece));
            if !out.write(text.as_ref().map_or(piece, |text| text.as_bytes()))? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Names the brick that cannot be read, and its box, so that the rest can be read around it.
fn damaged(dataset: &Path, layer: &Layer, info: &ArrayInfo, error: ReadError) -> CliError {
    let held = info.grid.region(&error.brick);
    let slices: Vec<String> = (0..held.axes()).map(|axis| format!("{}:{}", held.start[axis], held.end(axis))).collect();
    let (dataset, slices) = (escaped_path(dataset), slices.join(","));
    let what = format!("{dataset}, layer {}, lod {}, {error}", layer.name, info.lod);
    CliError::new(what, format!("the brick has --region {slices}, read around it"))
}
