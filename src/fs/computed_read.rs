//! Reads of files whose bytes are computed from samples: runs the steps of a read, on whichever thread has the samples.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use super::Volfs;
use super::error::FsError;
use super::handles::FileHandle;
use crate::array::{FileRange, ReadError, Selection};
use crate::format::FormatError;
use crate::logging::warn_seldom;
use crate::memory::Buffer;
use crate::pool::Bulkhead;
use crate::sync::Mutex;
use crate::view::{ComputedFile, ReadSteps, SampleRequest, Samples, Step};
use crate::volume::{AxisPermutation, Dims};

/// Gets the bytes of a read, or its error.
type Done = Box<dyn FnOnce(Result<&[u8], FsError>) + Send>;

/// A read of a computed file in progress.
struct ComputedRead {
    fs: Arc<Volfs>,
    file: Arc<FileHandle>,
    /// Whether the kernel keeps the bytes in its page cache.
    page_cached: bool,
    steps: Box<dyn ReadSteps>,
    done: Done,
}

/// Where the samples of a step meet the read that requested them. They may arrive before the request has returned: then
/// the read goes on in its loop, and not within itself.
enum Handover {
    /// The samples have been requested.
    Requested,
    /// They are here, and the request has not returned yet.
    Arrived(Result<Buffer, FsError>),
    /// The request has returned; the read goes on when they arrive.
    Parked(ComputedRead),
}

impl Volfs {
    /// Reads `bytes` of a computed file.
    pub(super) fn read_computed(
        self: &Arc<Self>,
        file: Arc<FileHandle>,
        computed: &Arc<dyn ComputedFile>,
        bytes: Range<u64>,
        page_cached: bool,
        done: impl FnOnce(Result<&[u8], FsError>) + Send + 'static,
    ) {
        if bytes.is_empty() {
            return done(Ok(&[]));
        }
        let (is_long, bulkhead) = (computed.is_long(&bytes), Bulkhead::new(file.ino.node().into()));
        let steps = Arc::clone(computed).read(bytes);
        let read = ComputedRead { fs: Arc::clone(self), file, page_cached, steps, done: Box::new(done) };
        if is_long {
            self.pool().submit(bulkhead, move || read.run(None));
        } else {
            read.run(None);
        }
    }

    /// Reads the samples of a step. Returns them to `done`, from within this call if nothing has to be waited for.
    fn read_samples(
        self: &Arc<Self>,
        file: &Arc<FileHandle>,
        request: SampleRequest,
        page_cached: bool,
        done: impl FnOnce(Result<Buffer, FsError>) + Send + 'static,
    ) {
        let SampleRequest { array, samples } = request;
        let info = array.info();
        let (selections, from_file) = match samples {
            Samples::Range(samples) => {
                let order = AxisPermutation::IDENTITY;
                let selections = Selection::from_range(info, &order, &samples, 0);
                // readers of the file are sequential in the array that it shows, not in others
                let is_shown = file.content.array().is_some_and(|shown| shown.info().id == info.id);
                let scans = Arc::clone(&file.scans);
                (selections, is_shown.then_some(FileRange { scans, order, samples, page_cached, ahead: false }))
            }
            Samples::Box(region) => (vec![Selection::new(&region, 0, info.dtype.size())], None),
        };
        self.read_selections(file, array, selections, from_file, done);
    }
}

impl ComputedRead {
    /// Runs steps until there are bytes, or samples have to be waited for.
    fn run(mut self, mut samples: Option<Buffer>) {
        loop {
            let request = match self.steps.step(samples.take(), self.fs.reader.buffers()) {
                Ok(Step::Read(request)) => request,
                Ok(Step::Done(bytes)) => return (self.done)(Ok(&bytes)),
                Ok(Step::Failed(cause)) => return self.fail(cause),
                Err(error) => {
                    warn_seldom(&error.to_string());
                    return (self.done)(Err(FsError::NoMemory));
                }
            };
            let handover = Arc::new(Mutex::new(Handover::Requested));
            let here = Arc::clone(&handover);
            self.fs.read_samples(&self.file, request, self.page_cached, move |arrived| {
                let mut handover = here.lock();
                if let Handover::Parked(read) = mem::replace(&mut *handover, Handover::Requested) {
                    drop(handover);
                    read.go_on(arrived);
                } else {
                    *handover = Handover::Arrived(arrived);
                }
            });
            let mut state = handover.lock();
            match mem::replace(&mut *state, Handover::Requested) {
                Handover::Arrived(Ok(arrived)) => samples = Some(arrived),
                Handover::Arrived(Err(error)) => return (self.done)(Err(error)),
                _ => {
                    *state = Handover::Parked(self);
                    return;
                }
            }
        }
    }

    /// Ends the read with an error that concerns no brick in particular.
    fn fail(self, cause: FormatError) {
        let (fs, file) = (&self.fs, &self.file);
        let Some(array) = file.content.array() else { return (self.done)(Err(FsError::Io)) };
        let error = ReadError { brick: Dims::filled(array.info().shape().len(), 0), cause };
        let error = fs.read_errors.client_error(fs.catalog_and_pool(), file.layer.as_ref(), array.info(), &error);
        (self.done)(Err(error));
    }

    fn go_on(self, samples: Result<Buffer, FsError>) {
        match samples {
            Ok(samples) => self.run(Some(samples)),
            Err(error) => (self.done)(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::super::Options;
    use super::super::Registries;
    use super::super::read::ReadRequest as FileRead;
    use super::super::tree::Ino;
    use super::*;
    use crate::counters::Counters;
    use crate::format::Array;
    use crate::memory::{BufferPool, OutOfMemory};
    use crate::source::Blocking;
    use crate::view::{Content, Entry, LayerRef, View};
    use crate::volume::Region;

    /// A folder `LAYER.rows` with a file `N` for each row of LOD 0: the samples of the row, each with its bytes
    /// reversed.
    struct Rows;

    const ROWS: u64 = 50_000;

    impl View for Rows {
        fn nodes(&self, _: LayerRef<'_>) -> u64 {
            1 + ROWS
        }
        fn beside_layer(&self) -> Option<&'static str> {
            Some(".rows")
        }
        fn is_folder(&self, _: LayerRef<'_>, node: u64) -> bool {
            node == 0
        }
        fn is_streamed(&self, _: LayerRef<'_>, folder: u64) -> bool {
            folder == 0
        }
        fn list(&self, _: LayerRef<'_>, _: Option<u64>, _: &mut dyn FnMut(Entry)) {
            unreachable!("it has no files in the layer's folder, and its own folder is streamed")
        }
        fn stream(&self, _: LayerRef<'_>, _: u64, from: u64, add: &mut dyn FnMut(Entry, u64) -> bool) {
            let entry = |row: u64| Entry { node: row + 1, name: row.to_string(), folder: false };
            let _ = (from..ROWS).all(|row| add(entry(row), row + 1));
        }
        fn find(&self, _: LayerRef<'_>, _: Option<u64>, name: &str) -> Option<Entry> {
            let row: u64 = name.parse().ok()?;
            (row < ROWS).then(|| Entry { node: row + 1, name: name.to_owned(), folder: false })
        }
        fn parent(&self, _: LayerRef<'_>, node: u64) -> Option<u64> {
            (node > 0).then_some(0)
        }
        fn content(&self, layer: LayerRef<'_>, node: u64) -> Result<Content, FormatError> {
            Ok(Content::Computed(Arc::new(Row { array: Arc::clone(&layer.levels()[0]), row: node - 1 })))
        }
    }

    struct Row {
        array: Arc<dyn Array>,
        row: u64,
    }

    impl ComputedFile for Row {
        fn len(&self) -> u64 {
            let info = self.array.info();
            info.shape()[2] * info.dtype.size() as u64
        }
        fn array(&self) -> &Arc<dyn Array> {
            &self.array
        }
        fn fingerprint(&self) -> u64 {
            self.row
        }
        fn is_long(&self, bytes: &Range<u64>) -> bool {
            bytes.start > 100
        }
        fn read(self: Arc<Self>, bytes: Range<u64>) -> Box<dyn ReadSteps> {
            Box::new(RowSteps { row: self, bytes, read: Vec::new() })
        }
    }

    /// Requests a range first, and then all others sample by sample.
    struct RowSteps {
        row: Arc<Row>,
        bytes: Range<u64>,
        read: Vec<u8>,
    }

    impl ReadSteps for RowSteps {
        fn step(&mut self, samples: Option<Buffer>, buffers: &Arc<BufferPool>) -> Result<Step, OutOfMemory> {
            let info = self.row.array.info();
            let (size, length, lines) = (info.dtype.size(), info.shape()[2], info.shape()[1]);
            self.read.extend(samples.iter().flat_map(|samples| samples.chunks(size)).flat_map(|s| s.iter().rev()));
            let read = (self.read.len() / size) as u64;
            if read == length {
                let part = &self.read[self.bytes.start as usize..self.bytes.end as usize];
                let mut out = buffers.take_reply(part.len())?;
                out.copy_from_slice(part);
                return Ok(Step::Done(out));
            }
            let first = self.row.row * length;
            let (line, column) = (self.row.row / lines, self.row.row % lines);
            let samples = match read {
                0 => Samples::Range(first..first + 3),
                _ if read.is_multiple_of(2) => Samples::Range(first + read..first + read + 1),
                _ => Samples::Box(Region { start: [line, column, read].into(), shape: [1, 1, 1].into() }),
            };
            Ok(Step::Read(SampleRequest { array: Arc::clone(&self.row.array), samples }))
        }
    }

    fn rows() -> Arc<Volfs> {
        let registries = Registries { views: &[&Rows], ..Registries::default() };
        Arc::new(Volfs::with_registries(Options::demo(), Arc::default(), registries).unwrap())
    }

    fn find(fs: &Volfs, path: &str) -> Ino {
        let step = |parent, name| fs.lookup(parent, OsStr::new(name), Blocking::Yes).unwrap().ino;
        path.split('/').fold(Ino::ROOT, step)
    }

    #[test]
    fn steps_are_run_until_there_are_bytes() {
        let fs = rows();
        let ino = find(&fs, "north.zgy/data.rows/123");
        let handle = fs.open(ino, Blocking::Yes).unwrap().handle;
        let size = fs.getattr(ino, Some(handle), Blocking::Yes).unwrap().size;
        let read = |offset, size| {
            let (done, answer) = mpsc::channel();
            let read = FileRead { handle, offset, size, cached: true };
            fs.read(read, move |bytes| done.send(bytes.unwrap().to_vec()).unwrap());
            answer.recv_timeout(Duration::from_secs(60)).unwrap()
        };
        let whole = read(0, 1 << 20);
        assert_eq!(whole.len() as u64, size);
        assert_eq!(read(7, 30), whole[7..37]);
        assert_eq!(read(101, 1 << 20), whole[101..]);
        assert_eq!((read(size, 1).len(), read(u64::MAX, 9).len()), (0, 0));
        let counted = fs.datasets.list().0.remove(0);
        let work = |counters: &Counters| counters.list().into_iter().filter(|(name, _)| *name != "source_bytes");
        assert!(work(&counted.counters).eq(work(&fs.counters)), "all that was read is of {}", counted.path);
        assert!(counted.counters.bricks_decoded.get() + counted.counters.source_bytes.get() > 0);

        let registries = Registries::default();
        let plain = Arc::new(Volfs::with_registries(Options::demo(), Arc::default(), registries).unwrap());
        let handle = plain.open(find(&plain, "north.zgy/data/lod0.raw"), Blocking::Yes).unwrap().handle;
        let (done, answer) = mpsc::channel();
        let row = FileRead { handle, offset: 123 * size, size: size as u32, cached: false };
        plain.read(row, move |bytes| done.send(bytes.unwrap().to_vec()).unwrap());
        let mut stored = answer.recv_timeout(Duration::from_secs(60)).unwrap();
        let sample =
            plain.getxattr(find(&plain, "north.zgy/data/lod0.raw"), OsStr::new("user.volfs.dtype"), Blocking::Yes);
        let size = if sample.unwrap() == b"int8" { 1 } else { 4 };
        stored.chunks_mut(size).for_each(<[u8]>::reverse);
        assert_eq!(whole, stored);
    }

    #[test]
    fn a_folder_beside_the_layer_is_listed_in_parts() {
        let fs = rows();
        let names = |ino: Ino, from: u64, most: usize| {
            let handle = fs.opendir(ino, Blocking::Yes).unwrap().handle;
            let (mut names, mut at) = (Vec::new(), from);
            fs.readdir(handle, from, Blocking::Yes, |entry, position| {
                if names.len() < most {
                    names.push((entry.name.to_str().unwrap().to_owned(), entry.ino, entry.folder));
                    at = position;
                    return true;
                }
                false
            })
            .unwrap();
            (names, at)
        };
        let dataset = find(&fs, "north.zgy");
        let listed: Vec<String> = names(dataset, 2, 9).0.into_iter().map(|(name, ..)| name).collect();
        assert_eq!(listed, ["dataset.json", "data", "data.rows"]);
        assert_eq!(names(find(&fs, "north.zgy/data"), 2, 9).0, []);
        let folder = find(&fs, "north.zgy/data.rows");
        assert!(fs.getattr(folder, None, Blocking::Yes).unwrap().folder);
        let (first, at) = names(folder, 0, 4);
        let row = |n: &str| (n.to_owned(), find(&fs, &format!("north.zgy/data.rows/{n}")), false);
        assert_eq!(first, [(".".into(), folder, true), ("..".into(), dataset, true), row("0"), row("1")]);
        assert_eq!(names(folder, at, 2).0, [row("2"), row("3")]);
        assert_eq!(names(folder, ROWS + 1, 9), (vec![row("49999")], ROWS + 2));
        assert_eq!(names(folder, u64::MAX, 9).0, []);
        assert_eq!(fs.lookup(folder, OsStr::new("50000"), Blocking::Yes), Err(FsError::NotFound));
    }
}
