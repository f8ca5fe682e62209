//! `volfs cat`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::iter::Peekable;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use nix::fcntl::{FcntlArg, fcntl};

use super::error::CliError;
use super::limits;
use super::parts::Parts;
use super::read_args::{CatArgs, Format};
use super::selection::select;
use crate::array::{BoxRequest, ReadError, Reader, ReaderConfig};
use crate::catalog::{self, OpenDataset};
use crate::format::{Array, FormatError, Layer, registry};
use crate::memory::Buffer;
use crate::pool::{Bulkhead, Pool};
use crate::view::npy;
use crate::volume::{ArrayInfo, Region};

/// Small parts are asked for ahead of the writing up to so many bytes; of large ones the next one.
const AHEAD: u64 = 64 << 20;

/// Bytes of small buffers, of bricks for instance, that wait to be used again.
const IDLE: u64 = 8 << 20;

/// Bytes that a pipe should hold, if it may: fewer changes between us and the reader.
const PIPE: i32 = 1 << 20;

/// Writes samples to standard output.
///
/// # Errors
/// [`CliError`]: what is wrong with the arguments, the dataset, or the output. That nobody reads on is none.
pub fn run(args: &CatArgs) -> Result<(), CliError> {
    let open = catalog::open_dataset(registry(), &args.path, args.quality)
        .map_err(|error| CliError::Dataset { dataset: args.path.clone(), error })?;
    let layer = layer(&open, args.layer.as_deref()).map_err(CliError::Argument)?;
    let array = level(layer, args.lod).map_err(CliError::Argument)?;
    let region = select(array.info(), args.region.as_ref(), &args.at).map_err(CliError::Argument)?;
    let mut out = output(args.force)?;
    if args.format == Format::Npy && !write(&mut out, &npy::header(array.info().dtype, &region.shape))? {
        return Ok(());
    }
    let damaged = |error| damaged(&args.path, layer, array.info(), error);
    copy(array, region, &mut out, damaged)
}

/// The layer of that name, or the first one.
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

/// Standard output without the buffer of lines that the library has before it.
fn output(force: bool) -> Result<File, CliError> {
    let stdout = io::stdout();
    if stdout.is_terminal() && !force {
        return Err(CliError::Terminal);
    }
    let out = stdout.as_fd().try_clone_to_owned().map_err(CliError::Output)?;
    // what is no pipe, or may not be larger, serves as it is
    let _ = fcntl(&out, FcntlArg::F_SETPIPE_SZ(PIPE));
    Ok(out.into())
}

/// Writes all of `bytes`; `false` if nobody reads them.
fn write(out: &mut File, bytes: &[u8]) -> Result<bool, CliError> {
    match out.write_all(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CliError::Output(error)),
    }
}

/// Writes a box, part by part, while the next parts are being read.
fn copy(
    array: &Arc<dyn Array>,
    region: Region,
    out: &mut File,
    damaged: impl Fn(ReadError) -> CliError,
) -> Result<(), CliError> {
    let memory = limits::default_cache_size();
    let most = memory / 8;
    let parts = Parts::new(&**array, region, most);
    let cache = if parts.share_bricks() { memory / 2 } else { 0 };
    let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let means = ReaderConfig { cache: bytes(cache), idle: bytes(most + IDLE), threads: limits::default_threads() };
    let ahead = Ahead {
        reader: means.reader(Pool::new(), Arc::default()),
        array,
        parts: parts.peekable(),
        asked: VecDeque::new(),
        bytes: 0,
    };
    for samples in ahead {
        if !write(out, &samples.map_err(&damaged)?)? {
            break;
        }
    }
    Ok(())
}

/// Parts in order, some of which are being read already.
struct Ahead<'a> {
    reader: Arc<Reader>,
    array: &'a Arc<dyn Array>,
    parts: Peekable<Parts<'a>>,
    asked: VecDeque<(Receiver<Result<Buffer, ReadError>>, Region)>,
    /// Bytes of the parts asked for.
    bytes: u64,
}

impl Ahead<'_> {
    fn bytes_of(&self, part: &Region) -> u64 {
        part.samples() * self.array.info().dtype.size() as u64
    }

    /// Asks for the next parts.
    fn ask(&mut self) {
        while let Some(part) = self.parts.peek().copied() {
            let bytes = self.bytes + self.bytes_of(&part);
            if bytes > AHEAD && !self.asked.is_empty() {
                break;
            }
            let (answer, receiver) = mpsc::channel();
            let request = BoxRequest { array: Arc::clone(self.array), region: part, bulkhead: Bulkhead::new(0) };
            // nobody waits for it any more if an earlier part failed
            self.reader.read_box(request, move |read| drop(answer.send(read)));
            self.asked.push_back((receiver, part));
            self.bytes = bytes;
            self.parts.next();
        }
    }
}

impl Iterator for Ahead<'_> {
    type Item = Result<Buffer, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.ask();
        let (answer, part) = self.asked.pop_front()?;
        // an answer always comes; should it fail to, the output must not look whole
        let gone = |_| ReadError { brick: part.start, cause: FormatError::Damaged("there was no answer".into()) };
        let read = answer.recv().map_err(gone).and_then(|read| read);
        self.bytes -= self.bytes_of(&part);
        // while this part is being written
        self.ask();
        Some(read)
    }
}

/// Which brick cannot be read, and how to read the rest.
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
