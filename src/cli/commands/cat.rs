//! `volfs cat`: writes the samples of a box, chunk by chunk, while later chunks are being decoded.

mod chunked_box;
mod selection;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::iter::Peekable;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use nix::fcntl::{FcntlArg, fcntl};

use self::chunked_box::ChunkedBox;
use self::selection::select;
use crate::array::{BoxRequest, ReadError, Reader, ReaderConfig};
use crate::catalog::{self, OpenDataset};
use crate::cli::args::{CatArgs, Format};
use crate::cli::error::CliError;
use crate::cli::machine::limits;
use crate::cli::output;
use crate::format::{Array, FormatError, Layer, registry};
use crate::memory::Buffer;
use crate::pool::{Bulkhead, Pool};
use crate::view::npy;
use crate::volume::{ArrayInfo, Region};

/// Bytes of the chunks in flight at a time. One chunk is prefetched in any case, however large.
const PREFETCH_BYTES: u64 = 64 << 20;

/// Bytes of idle buffers that the pool keeps, besides those of a chunk.
const IDLE_BYTES: u64 = 8 << 20;

/// The capacity wanted for an output pipe: a large one saves context switches between writer and reader.
const PIPE_BYTES: i32 = 1 << 20;

/// Writes samples to standard output. A closed pipe ends the output without an error.
///
/// # Errors
/// [`CliError`]: what is wrong with the arguments, the dataset or the output.
pub fn run(args: &CatArgs) -> Result<(), CliError> {
    let open = catalog::open_dataset(registry(), &args.path, args.quality)
        .map_err(|error| CliError::Dataset { dataset: args.path.clone(), error })?;
    let layer = layer(&open, args.layer.as_deref()).map_err(CliError::Argument)?;
    let array = level(layer, args.lod).map_err(CliError::Argument)?;
    let region = select(array.info(), args.region.as_ref(), &args.at).map_err(CliError::Argument)?;
    let mut out = open_output(args.force)?;
    if args.format == Format::Npy && !output::write_to(&mut out, &npy::header(array.info().dtype, &region.shape))? {
        return Ok(());
    }
    let damaged = |error| damaged(&args.path, layer, array.info(), error);
    copy(array, region, &mut out, damaged)
}

/// Returns the layer of that name, or the first one.
fn layer<'a>(open: &'a OpenDataset, name: Option<&str>) -> Result<&'a Layer, String> {
    let layers = open.dataset.layers();
    let Some(name) = name else {
        return layers.first().ok_or_else(|| "the volume has no layer that can be shown; see volfs info".to_owned());
    };
    if let Some(hidden) = open.dataset.hidden().iter().find(|layer| layer.name == name) {
        return Err(format!("--layer {name} cannot be shown: {}", hidden.reason));
    }
    let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
    let found = layers.iter().find(|layer| layer.name == name);
    found.ok_or_else(|| format!("--layer: there is no layer {name}; there is {}", names.join(", ")))
}

fn level(layer: &Layer, lod: usize) -> Result<&Arc<dyn Array>, String> {
    layer.levels.get(lod).ok_or_else(|| {
        let last = layer.levels.len().saturating_sub(1);
        format!("--lod: there is no LOD {lod}; layer {} has LOD 0 to {last}", layer.name)
    })
}

/// Returns standard output as a file, without the line buffer of the standard library.
fn open_output(force: bool) -> Result<File, CliError> {
    let stdout = io::stdout();
    if stdout.is_terminal() && !force {
        return Err(CliError::Terminal);
    }
    let out = stdout.as_fd().try_clone_to_owned().map_err(CliError::Output)?;
    // fails if this is no pipe, or above the user's limit: then the size stays as it is
    let _ = fcntl(&out, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
    Ok(out.into())
}

/// Writes a box, chunk by chunk, while the next chunks are being read.
fn copy(
    array: &Arc<dyn Array>,
    region: Region,
    out: &mut File,
    damaged: impl Fn(ReadError) -> CliError,
) -> Result<(), CliError> {
    let memory = limits::default_cache_size();
    let max_chunk = memory / 8;
    let chunks = ChunkedBox::new(&**array, region, max_chunk);
    let cache = if chunks.share_bricks() { memory / 2 } else { 0 };
    let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let config = ReaderConfig {
        cache_bytes: bytes(cache),
        idle_buffer_bytes: bytes(max_chunk + IDLE_BYTES),
        threads: limits::default_threads(),
    };
    let prefetch = Prefetch {
        reader: config.reader(Pool::new(), Arc::default()),
        array,
        chunks: chunks.peekable(),
        in_flight: VecDeque::new(),
        bytes: 0,
    };
    for samples in prefetch {
        if !output::write_to(out, &samples.map_err(&damaged)?)? {
            break;
        }
    }
    Ok(())
}

/// Reads chunks and returns them in order, with some more in flight.
struct Prefetch<'a> {
    reader: Arc<Reader>,
    array: &'a Arc<dyn Array>,
    chunks: Peekable<ChunkedBox<'a>>,
    in_flight: VecDeque<(Receiver<Result<Buffer, ReadError>>, Region)>,
    /// Bytes of the chunks in flight.
    bytes: u64,
}

impl Prefetch<'_> {
    fn bytes_of(&self, chunk: &Region) -> u64 {
        chunk.samples() * self.array.info().dtype.size() as u64
    }

    /// Requests the next chunks.
    fn request(&mut self) {
        while let Some(chunk) = self.chunks.peek().copied() {
            let bytes = self.bytes + self.bytes_of(&chunk);
            if bytes > PREFETCH_BYTES && !self.in_flight.is_empty() {
                break;
            }
            let (answer, receiver) = mpsc::channel();
            let request = BoxRequest { array: Arc::clone(self.array), region: chunk, bulkhead: Bulkhead::new(0) };
            // the receiver is gone if an earlier chunk failed
            self.reader.read_box(request, move |read| drop(answer.send(read)));
            self.in_flight.push_back((receiver, chunk));
            self.bytes = bytes;
            self.chunks.next();
        }
    }
}

impl Iterator for Prefetch<'_> {
    type Item = Result<Buffer, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.request();
        let (answer, chunk) = self.in_flight.pop_front()?;
        // a reader that is dropped without an answer must not end the output as if it were complete
        let gone = |_| ReadError { brick: chunk.start, cause: FormatError::Damaged("there was no answer".into()) };
        let read = answer.recv().map_err(gone).and_then(|read| read);
        self.bytes -= self.bytes_of(&chunk);
        // the next chunks are read while this one is written
        self.request();
        Some(read)
    }
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
