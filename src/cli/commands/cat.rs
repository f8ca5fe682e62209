//! `volfs cat`: writes the samples of a box, chunk by chunk, while later chunks are being decoded.

mod chunked_box;
mod destination;
mod prefetch;
mod selection;
mod unfinished;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use indicatif::ProgressBar;

use self::chunked_box::ChunkedBox;
use self::destination::{Destination, Progress};
use self::prefetch::Prefetch;
use self::selection::select;
use self::unfinished::Unfinished;
use crate::array::{ReadError, ReaderConfig};
use crate::catalog::OpenDataset;
use crate::cli::args::{CatArgs, Format};
use crate::cli::dataset_at::DatasetAt;
use crate::cli::deadline;
use crate::cli::error::CliError;
use crate::cli::interrupt::Interrupts;
use crate::cli::machine::limits;
use crate::cli::output;
use crate::cli::progress_bar::Bar;
use crate::cli::text::choice::choose;
use crate::cli::text::size::Size;
use crate::format::{Array, Layer};
use crate::fs::layer_folders;
use crate::pool::Pool;
use crate::view::npy;
use crate::volume::{ArrayInfo, Region};

/// Bytes of idle buffers that the pool keeps, besides those of a chunk.
const IDLE_BYTES: u64 = 8 << 20;

/// The progress bar.
const TEMPLATE: &str = "{spinner} [{bar:24}] {percent}% of {msg}, {eta} left";

/// Writes samples to standard output or to a file. A closed pipe ends the output without an error; a signal removes
/// (or empties, if it cannot be replaced) a file that is not complete.
pub(crate) fn run(args: &CatArgs) -> Result<(), CliError> {
    // before there are threads
    deadline::check_local(&args.path, || drop(DatasetAt::open(&args.path, &[], None, args.zfp.decoder())))?;
    // before there are threads, which inherit the mask
    let interrupts = Interrupts::block();
    let started = Arc::new(OnceLock::<(Arc<Progress>, Bar)>::new());
    let running = Arc::clone(&started);
    let unfinished = Arc::<Unfinished>::default();
    let begun = Arc::clone(&unfinished);
    interrupts.on_arrival(move || match running.get() {
        Some((progress, bar)) => {
            bar.clear();
            progress.interrupt().iter().for_each(|words| output::note(words));
        }
        // a file may just be being created
        None => drop(begun.interrupt()),
    });
    let found = DatasetAt::open(&args.path, &args.store_option, args.quality, args.zfp.decoder())?;
    let chosen = Chosen::by(args, &found).map_err(CliError::Argument)?;
    let (layer, array) = (chosen.layer, chosen.array);
    let info = array.info();
    let region = select(info, args.region.as_ref(), &args.at).map_err(CliError::Argument)?;
    let header = if args.format == Format::Npy { npy::header(info.dtype, &region.shape) } else { Vec::new() };
    let total = header.len() as u64 + region.samples() * info.dtype.size() as u64;
    let mut out = Destination::open(args.output.as_deref(), total, &found.path, args.force, &unfinished)?;
    chosen.note.iter().for_each(|note| output::note(note));
    let bar = if out.is_file() { Bar::new(TEMPLATE) } else { Bar::hidden() };
    drop(started.set((Arc::clone(out.progress()), bar.clone())));
    let progress = Arc::clone(out.progress());
    let shown = bar.follow(move |bar, since| draw(bar, &progress, since));
    let damaged = |error| damaged(&found.path, layer, info, error);
    if out.write(&header)? && copy(array, region, &mut out, damaged)? {
        out.finish()?;
    }
    drop(shown);
    Ok(())
}

fn draw(bar: &ProgressBar, progress: &Progress, since: Duration) {
    let (written, total) = (progress.written.get(), progress.total);
    let rate = written as f64 / since.as_secs_f64().max(0.001);
    bar.set_length(total);
    bar.set_message(format!("{}, {}/s", Size::of(total), Size::of(rate as u64)));
    bar.set_position(written);
}

/// The array that the arguments choose.
struct Chosen<'a> {
    layer: &'a Layer,
    array: &'a Arc<dyn Array>,
    /// What a user should know about the choice.
    note: Option<String>,
}

impl<'a> Chosen<'a> {
    /// Chooses by --layer and --lod, or by a path that is a layer or a level inside a mount.
    fn by(args: &CatArgs, found: &'a DatasetAt) -> Result<Self, String> {
        let named = args.layer.as_deref().map(|name| layer(&found.open, name)).transpose()?;
        let index = agreeing("--layer", named, found.layer)?.unwrap_or(0);
        let no_layer = || "the volume has no layer that can be shown; see volfs info".to_owned();
        let layer = found.open.dataset.layers().get(index).ok_or_else(no_layer)?;
        if let (None, Some(file)) = (found.lod, &found.file) {
            return Err(format!(
                "{file} has no samples of a level; give a file lodN.*, or the folder of a layer or volume"
            ));
        }
        let array = level(layer, agreeing("--lod", args.lod, found.lod)?.unwrap_or(0))?;
        let axes = || array.info().axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>().join(", ");
        let turned = found.file.as_ref().filter(|file| file.contains(".by-"));
        let note = turned.map(|file| format!("the samples come as [{}], not turned as in {file}", axes()));
        let scaled = found.file.as_ref().filter(|file| file.contains(".float32."));
        let note =
            note.or_else(|| scaled.map(|file| format!("the samples come as stored, not as float32 as in {file}")));
        Ok(Self { layer, array, note })
    }
}

/// Returns what an option or the path says, if they do not contradict each other.
fn agreeing(option: &str, typed: Option<usize>, by_path: Option<usize>) -> Result<Option<usize>, String> {
    match (typed, by_path) {
        (Some(one), Some(other)) if one != other => Err(format!("{option} contradicts the path; give one of them")),
        _ => Ok(typed.or(by_path)),
    }
}

/// Returns the number of the layer of that name.
fn layer(open: &OpenDataset, name: &str) -> Result<usize, String> {
    let names: Vec<&str> = open.dataset.layers().iter().map(|layer| layer.name.as_str()).collect();
    let by_name = choose("layer", &names, name);
    let hidden = open.dataset.hidden().iter().find(|layer| layer.name.eq_ignore_ascii_case(name));
    match (by_name, hidden) {
        (Ok(found), None) => Ok(found),
        (Ok(found), Some(_)) if names.get(found) == Some(&name) => Ok(found),
        (_, Some(hidden)) => Err(format!("--layer {} cannot be shown: {}", hidden.name, hidden.reason)),
        (Err(error), None) => {
            // the names of folders are those of layers, percent-encoded
            let folder = layer_folders(open).iter().position(|folder| folder == name);
            folder.ok_or_else(|| format!("--layer: {error}"))
        }
    }
}

fn level(layer: &Layer, lod: usize) -> Result<&Arc<dyn Array>, String> {
    layer.levels.get(lod).ok_or_else(|| {
        let last = layer.levels.len().saturating_sub(1);
        format!("--lod: there is no LOD {lod}; layer {} has LOD 0 to {last}", layer.name)
    })
}

/// Writes a box, chunk by chunk, while the next chunks are being read. Returns `false` once the reader is gone.
fn copy(
    array: &Arc<dyn Array>,
    region: Region,
    out: &mut Destination,
    damaged: impl Fn(ReadError) -> CliError,
) -> Result<bool, CliError> {
    let memory = limits::default_cache_size();
    let max_chunk = memory / 8;
    let chunks = ChunkedBox::new(&**array, region, max_chunk);
    let cache = if chunks.share_bricks() { memory / 2 } else { 0 };
    let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let config = ReaderConfig {
        cache_bytes: bytes(cache),
        idle_buffer_bytes: bytes(max_chunk + IDLE_BYTES),
        prefaulted_bytes: 0,
        threads: limits::default_threads(),
    };
    for samples in Prefetch::new(config.reader(Pool::new(), Arc::default()), array, chunks) {
        if !out.write(&samples.map_err(&damaged)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Names the brick that cannot be read, and its box, so that the rest can be read around it.
fn damaged(dataset: &Path, layer: &Layer, info: &ArrayInfo, error: ReadError) -> CliError {
    let held = info.grid.region(&error.brick);
    let slices: Vec<String> = (0..held.axes()).map(|axis| format!("{}:{}", held.start[axis], held.end(axis))).collect();
    CliError::Brick {
        dataset: dataset.to_owned(),
        layer: layer.name.clone(),
        lod: info.lod,
        held: slices.join(","),
        error: Box::new(error),
    }
}
