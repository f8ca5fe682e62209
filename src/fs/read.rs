//! Reads of open files, and the read-ahead requests that follow from them.

use std::mem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::param::page_size;

use super::Volfs;
use super::error::FsError;
use super::handles::{ContentState, FileHandle, Handle};
use super::ino::Ino;
use super::readahead::{FileLayout, Readahead, is_marker, marker_before};
use crate::array::{self, ReadError, Recorded};
use crate::catalog::NodeKind;
use crate::format::FormatError;
use crate::logging::warn_seldom;
use crate::memory::{Buffer, OutOfMemory, has_memory};
use crate::pool::Bulkhead;
use crate::source::Blocking;
use crate::sync::Mutex;
use crate::view::{Content, FileRead, SampleRequest, Step};
use crate::volume::Dims;

/// The most read-ahead requests in flight, all readers together and in one dataset. The kernel bounds its background
/// requests, and those for a source that hangs must leave room for others.
const MAX_IN_FLIGHT: usize = 5;
const MAX_IN_FLIGHT_OF_DATASET: usize = 2;

/// A read of an open file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadRequest {
    /// The file's handle.
    pub handle: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes; fewer are read at the end of the file.
    pub size: u32,
    /// Whether the kernel will keep the bytes in its page cache.
    pub cached: bool,
}

/// What becomes of the samples of a read.
#[derive(Clone, Copy)]
struct Destination {
    /// The kernel keeps them in its page cache.
    page_cached: bool,
    /// They are read ahead of the client that will want them.
    ahead: bool,
}

/// The size of a page in bytes.
fn page() -> u64 {
    page_size() as u64
}

impl Volfs {
    /// Sets the implementation of read-ahead for sequential readers. Only the first call has an effect, and none has
    /// one if the page cache is bypassed.
    pub(crate) fn set_readahead(&self, readahead: Box<dyn Readahead>) {
        if !self.options.direct_io {
            let _ = self.readahead.set(readahead);
        }
    }

    /// Reads from an open file. Calls `done` with the bytes, which are fewer than asked for at the end of the file:
    /// from within this call if nothing has to be waited for, otherwise on a thread of the pool.
    pub(crate) fn read(
        self: &Arc<Self>,
        read: ReadRequest,
        done: impl FnOnce(Result<&[u8], FsError>) + Send + 'static,
    ) {
        let number = self.counters.reads.increment();
        let (file, readahead) = match self.handles.get(read.handle).as_deref() {
            Some(Handle::File(file)) => (Arc::clone(file), false),
            Some(Handle::Readahead(file)) => (Arc::clone(file), true),
            Some(Handle::Folder(_) | Handle::SourceFolder(_) | Handle::ViewFolder(_)) => {
                return done(Err(FsError::IsAFolder));
            }
            None => return done(Err(FsError::BadHandle)),
        };
        file.count_read(number);
        if !has_memory() {
            return self.counted(&file, done)(Err(FsError::NoMemory));
        }
        match file.state {
            ContentState::Current => self.read_file(file, readahead, read, done),
            ContentState::Stale => self.counted(&file, done)(Err(FsError::Io)),
            ContentState::Unknown => {
                let (fs, bulkhead) = (Arc::clone(self), Bulkhead::new(file.ino.node().into()));
                let waiting = self.pool().request(bulkhead);
                self.pool().submit(bulkhead, move || {
                    let file = fs.found_again(read.handle, &file);
                    drop(waiting);
                    match file.state {
                        ContentState::Current => fs.read_file(file, readahead, read, done),
                        _ => fs.counted(&file, done)(Err(FsError::Io)),
                    }
                });
            }
        }
    }

    /// Whether the kernel keeps the bytes of a read in its page cache.
    pub(super) fn is_page_cached(&self, read: &ReadRequest) -> bool {
        read.cached && !self.options.direct_io
    }

    /// Reads from an open file whose content is current.
    fn read_file(
        self: &Arc<Self>,
        file: Arc<FileHandle>,
        readahead: bool,
        read: ReadRequest,
        done: impl FnOnce(Result<&[u8], FsError>) + Send + 'static,
    ) {
        if readahead && matches!(file.content, Content::Array(_)) {
            return self.read_for_readahead(file, read, done);
        }
        let done = self.counted(&file, done);
        match self.take_marker_page(&file, &read) {
            Some(page) => done(Ok(&page)),
            None => self.read_content(file, read, false, move |read| done(as_bytes(&read))),
        }
    }

    /// Returns the marker page that a client asks for, if it is stored, and records that the client has come there.
    fn take_marker_page(&self, file: &Arc<FileHandle>, read: &ReadRequest) -> Option<Box<[u8]>> {
        let Content::Array(array) = &file.content else { return None };
        if !read.cached || !is_marker(read.offset, read.size.into(), page()) {
            return None;
        }
        let stored = self.marker_pages.take((file.ino, array.array().info().id), read.offset)?;
        let samples = array.samples(&(read.offset..read.offset + page()));
        self.record_read(file, &samples, Destination { page_cached: self.is_page_cached(read), ahead: false });
        Some(stored)
    }

    /// Wraps `done` so that its bytes or its error are counted.
    fn counted(
        self: &Arc<Self>,
        file: &Arc<FileHandle>,
        done: impl FnOnce(Result<&[u8], FsError>) + Send + 'static,
    ) -> impl FnOnce(Result<&[u8], FsError>) + Send + 'static {
        let (fs, file) = (Arc::clone(self), Arc::clone(file));
        move |read| {
            file.count_outcome(&fs.counters, read.as_deref());
            done(read);
        }
    }

    /// Reads for the read-ahead process, together with the marker page before the read, which is stored. Errors are not
    /// counted here, but when a client asks for the same bytes.
    fn read_for_readahead(
        self: &Arc<Self>,
        file: Arc<FileHandle>,
        read: ReadRequest,
        done: impl FnOnce(Result<&[u8], FsError>) + Send + 'static,
    ) {
        let Some((marker, size)) = marker_before(read.offset, page()).zip(read.size.checked_add(page() as u32)) else {
            let (fs, of_file) = (Arc::clone(self), Arc::clone(&file));
            return self.read_content(file, read, true, move |read| {
                done(as_bytes(&read).inspect(|bytes| of_file.count_bytes_read(&fs.counters, bytes.len() as u64)));
            });
        };
        let Content::Array(array) = &file.content else { return done(Err(FsError::Io)) };
        let (fs, shown) = (Arc::clone(self), (file.ino, array.array().info().id));
        let of_file = Arc::clone(&file);
        self.read_content(file, ReadRequest { offset: marker, size, ..read }, true, move |read| {
            done(as_bytes(&read).map(|bytes| {
                let (page, bytes) = bytes.split_at(bytes.len().min(page() as usize));
                fs.marker_pages.put(shown, marker, page);
                of_file.count_bytes_read(&fs.counters, bytes.len() as u64);
                bytes
            }))
        });
    }

    /// Records a read of samples of the array that a file shows. If its reader is sequential and few requests are in
    /// flight, requests that the pages after the read are read ahead. Comes before the reply, since the client may close
    /// the file after it.
    fn record_read(&self, file: &Arc<FileHandle>, samples: &Range<u64>, to: Destination) -> Option<Recorded> {
        let Destination { page_cached, ahead } = to;
        let recorded = file.readers.as_ref()?.record(samples, ahead, page_cached);
        let readahead = self.readahead.get().filter(|_| page_cached && !ahead);
        let (Some(readahead), Some(reader), Content::Array(array)) = (readahead, &recorded.reader, &file.content)
        else {
            return Some(recorded);
        };
        let few_in_flight = || {
            let (of_dataset, open) = self.handles.readahead_handles(file.ino.node());
            of_dataset < MAX_IN_FLIGHT_OF_DATASET
                && readahead.in_flight().is_some_and(|requests| requests + open < MAX_IN_FLIGHT)
        };
        let layout = FileLayout { file: array.len(), header: array.header_bytes(), sample: array.sample_size() };
        if let Some(bytes) = reader.read_ahead(|progress, plane| layout.next_request(progress, plane, few_in_flight))
            && let Some(path) = file.path.get_or_init(|| self.path(file.ino))
        {
            self.handles.expect_readahead(file);
            readahead.request(file.ino, path, bytes);
        }
        Some(recorded)
    }
}

impl Volfs {
    /// Like [`Volfs::read`], and leaves the bytes to `done`.
    pub(crate) fn read_owned(
        self: &Arc<Self>,
        read: ReadRequest,
        done: impl FnOnce(Result<Buffer, FsError>) + Send + 'static,
    ) {
        let open = self.handles.get(read.handle);
        let file = match open.as_deref() {
            Some(Handle::File(file)) if file.state == ContentState::Current => Arc::clone(file),
            _ => return self.read_copied(read, done),
        };
        file.count_read(self.counters.reads.increment());
        let (fs, of_file) = (Arc::clone(self), Arc::clone(&file));
        self.read_content(file, read, false, move |read| {
            of_file.count_outcome(&fs.counters, read.as_deref());
            done(read);
        });
    }

    fn read_copied(self: &Arc<Self>, read: ReadRequest, done: impl FnOnce(Result<Buffer, FsError>) + Send + 'static) {
        let buffers = Arc::clone(self.reader.buffers());
        self.read(read, move |read| {
            done(read.and_then(|bytes| {
                let mut copy = buffers.try_take(bytes.len()).map_err(|_| FsError::NoMemory)?;
                copy.copy_from_slice(bytes);
                Ok(copy)
            }));
        });
    }

    /// Reads bytes of an open file, maybe `ahead` of the client that will want them.
    fn read_content(
        self: &Arc<Self>,
        file: Arc<FileHandle>,
        read: ReadRequest,
        ahead: bool,
        done: impl FnOnce(Result<Buffer, FsError>) + Send + 'static,
    ) {
        let end = read.offset.saturating_add(read.size.into()).min(file.content.len());
        let (bytes, buffers) = (read.offset.min(end)..end, self.reader.buffers());
        if bytes.is_empty() {
            return done(Ok(buffers.empty()));
        }
        let is_long = matches!(&file.content, Content::Computed(computed) if computed.is_long(&bytes));
        let mut segments = match file.content.read(bytes, buffers) {
            Ok(segments) => segments,
            Err(error) => return done(Err(no_memory(&error))),
        };
        let bulkhead = Bulkhead::new(file.ino.node().into());
        let to = Destination { page_cached: self.is_page_cached(&read), ahead };
        let fs = Arc::clone(self);
        let begin = move || match segments.step(None, fs.reader.buffers()) {
            // most reads
            Ok(Step::Read { samples, is_last: true }) => fs.read_samples(&file, samples, to, done),
            step => ReadInProgress { fs, file, to, segments, done: Box::new(done) }.run(step),
        };
        if is_long {
            self.pool().submit(bulkhead, begin);
        } else {
            begin();
        }
    }

    /// Reads samples for an open file. Returns their memory to `done`, from within this call if nothing has to be waited
    /// for.
    fn read_samples(
        self: &Arc<Self>,
        file: &Arc<FileHandle>,
        samples: SampleRequest,
        to: Destination,
        done: impl FnOnce(Result<Buffer, FsError>) + Send + 'static,
    ) {
        let SampleRequest { array, selections, range, memory } = samples;
        // readers of the file are sequential in the array that it shows, not in others
        let is_shown = file.content.array().is_some_and(|shown| shown.info().id == array.info().id);
        let from_file = range.filter(|_| is_shown).and_then(|samples| self.record_read(file, &samples, to));
        let (bulkhead, counters) = (Bulkhead::new(file.ino.node().into()), file.counters());
        let (fs, file, read_from) = (Arc::clone(self), Arc::clone(file), Arc::clone(&array));
        let request = array::ReadRequest { array, selections, bulkhead, counters, from_file, is_entire: false };
        // what is read ahead may be for another client
        let is_closed = if to.ahead { Arc::default() } else { Arc::clone(&file.is_closed) };
        self.reader.read(request, memory, Arc::clone(&is_closed), move |read| {
            if is_closed.load(Ordering::Relaxed) {
                return done(Err(FsError::BadHandle));
            }
            done(read.map_err(|error| {
                let source = fs.catalog_and_pool();
                fs.read_errors.client_error(source, file.layer.as_ref(), read_from.info(), &error)
            }));
        });
    }
}

/// Lends the bytes of a read.
fn as_bytes(read: &Result<Buffer, FsError>) -> Result<&[u8], FsError> {
    read.as_deref().map_err(Clone::clone)
}

/// A read of a file: goes from step to step on whichever thread has the samples.
struct ReadInProgress {
    fs: Arc<Volfs>,
    file: Arc<FileHandle>,
    to: Destination,
    segments: FileRead,
    done: Box<dyn FnOnce(Result<Buffer, FsError>) + Send>,
}

/// Where the samples of a step meet the read that requested them. They may arrive before the request has returned: then
/// the read goes on in its loop, and not within itself.
enum Handover {
    /// The samples have been requested.
    Requested,
    /// They are here, and the request has not returned yet.
    Arrived(Result<Buffer, FsError>),
    /// The request has returned; the read goes on when they arrive.
    Parked(Box<ReadInProgress>),
}

impl ReadInProgress {
    /// Goes on from a step until there are bytes, or samples have to be waited for.
    fn run(mut self, mut step: Result<Step, FormatError>) {
        loop {
            let samples = match step {
                Ok(Step::Read { samples, is_last: true }) => {
                    return self.fs.read_samples(&self.file, samples, self.to, self.done);
                }
                Ok(Step::Read { samples, .. }) => samples,
                Ok(Step::Done(bytes)) => return (self.done)(Ok(bytes)),
                Err(cause) => return self.fail(cause),
            };
            let handover = Arc::new(Mutex::new(Handover::Requested));
            let here = Arc::clone(&handover);
            self.fs.read_samples(&self.file, samples, self.to, move |arrived| {
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
                Handover::Arrived(Ok(arrived)) => step = self.segments.step(Some(arrived), self.fs.reader.buffers()),
                Handover::Arrived(Err(error)) => return (self.done)(Err(error)),
                _ => {
                    *state = Handover::Parked(Box::new(self));
                    return;
                }
            }
        }
    }

    fn go_on(mut self, samples: Result<Buffer, FsError>) {
        match samples {
            Ok(samples) => {
                let step = self.segments.step(Some(samples), self.fs.reader.buffers());
                self.run(step);
            }
            Err(error) => (self.done)(Err(error)),
        }
    }

    /// Ends the read with an error that concerns no brick in particular.
    fn fail(self, cause: FormatError) {
        let (fs, file) = (&self.fs, &self.file);
        if cause.is_out_of_memory() {
            warn_seldom(&cause.to_string());
            return (self.done)(Err(FsError::NoMemory));
        }
        let Some(array) = file.content.array() else { return (self.done)(Err(FsError::Io)) };
        let error = ReadError { brick: Dims::filled(array.info().shape().len(), 0), cause };
        let error = fs.read_errors.client_error(fs.catalog_and_pool(), file.layer.as_ref(), array.info(), &error);
        (self.done)(Err(error));
    }
}

fn no_memory(error: &OutOfMemory) -> FsError {
    warn_seldom(&error.to_string());
    FsError::NoMemory
}

/// What is known of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Size in bytes.
    pub size: u64,
    /// The number of refreshes of the dataset before the content was found out: a file has one content for each inode
    /// number and epoch.
    pub epoch: u32,
    /// Whether the dataset was written so shortly before it was read that it will be read again.
    pub is_recent: bool,
}

impl Volfs {
    /// Returns what is known of an open file; `None` if there is no such handle.
    pub(crate) fn opened(&self, handle: u64) -> Option<Opened> {
        let handle = self.handles.get(handle)?;
        let Handle::File(file) = &*handle else { return None };
        let node = self.catalog.node(file.ino.node());
        let is_recent = node.is_some_and(|node| node.recent().is_some_and(|recent| recent.is_pending()));
        Some(Opened { size: file.content.len(), epoch: file.epoch, is_recent })
    }

    /// Returns whether an inode is the folder of a dataset.
    pub(crate) fn is_dataset(&self, ino: Ino) -> bool {
        ino.index() == 0 && self.catalog.node(ino.node()).is_some_and(|node| node.kind == NodeKind::Dataset)
    }
}

impl Volfs {
    /// Replies with the result of `call`: at once if it need not wait, otherwise from a thread of the pool, which may
    /// wait.
    pub(crate) fn answer<T: 'static>(
        self: &Arc<Self>,
        bulkhead: Bulkhead,
        call: impl Fn(&Arc<Self>, Blocking) -> Result<T, FsError> + Send + 'static,
        reply: impl FnOnce(Result<T, FsError>) + Send + 'static,
    ) {
        if !has_memory() {
            warn_seldom("no memory is left: requests fail; choose a smaller --cache-size, or allow the process more");
            return reply(Err(FsError::NoMemory));
        }
        // a panic fails one request and does not end the thread that takes requests
        match catch_unwind(AssertUnwindSafe(|| call(self, Blocking::No))).unwrap_or(Err(FsError::Io)) {
            Err(FsError::WouldBlock) => {
                let (fs, waiting) = (Arc::clone(self), self.pool().request(bulkhead));
                self.pool().submit(bulkhead, move || {
                    let answer = call(&fs, Blocking::Yes);
                    drop(waiting);
                    reply(answer);
                });
            }
            answer => reply(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;
    use std::path::PathBuf;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::super::Options;
    use super::super::ino::Ino;
    use super::super::readahead::advice_ranges;
    use super::*;
    use crate::source::Blocking;
    use crate::sync::Mutex;

    type Requests = Arc<Mutex<Vec<(Ino, PathBuf, Range<u64>)>>>;

    /// A `Readahead` that records requests.
    struct Recorder(Requests);

    impl Readahead for Recorder {
        fn in_flight(&self) -> Option<usize> {
            Some(0)
        }

        fn request(&self, file: Ino, path: &Path, bytes: Range<u64>) {
            self.0.lock().push((file, path.to_owned(), bytes));
        }

        fn cancel(&self, file: Ino) {
            self.0.lock().retain(|(requested, ..)| *requested != file);
        }
    }

    fn demo(cache_size: u64, direct_io: bool) -> (Arc<Volfs>, Requests) {
        let options = Options { cache_size, threads: 2, direct_io, ..Options::demo() };
        let fs = Arc::new(Volfs::new(options, Arc::default()).unwrap());
        let requests = Requests::default();
        fs.set_readahead(Box::new(Recorder(Arc::clone(&requests))));
        (fs, requests)
    }

    fn find(fs: &Volfs, path: &str) -> Ino {
        let step = |parent, name| fs.lookup(parent, OsStr::new(name), Blocking::Yes).unwrap().ino;
        path.split('/').fold(Ino::ROOT, step)
    }

    fn open(fs: &Arc<Volfs>, path: &str) -> u64 {
        fs.open(find(fs, path), Blocking::Yes).unwrap().handle
    }

    fn read(fs: &Arc<Volfs>, handle: u64, offset: u64, size: u32, cached: bool) -> Vec<u8> {
        let (done, answer) = mpsc::channel();
        fs.read(ReadRequest { handle, offset, size, cached }, move |bytes| done.send(bytes.unwrap().to_vec()).unwrap());
        answer.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    /// Carries out the requests since the last call, like the kernel and the read-ahead process. Returns offsets and
    /// bytes.
    fn read_ahead(fs: &Arc<Volfs>, requests: &Requests) -> Vec<(u64, Vec<u8>)> {
        let requests = std::mem::take(&mut *requests.lock());
        let mut pieces = Vec::new();
        for (ino, path, bytes) in requests {
            assert_eq!(find(fs, path.to_str().unwrap()), ino, "the path leads to the file");
            let handle = fs.open_for_readahead(ino).unwrap().handle;
            assert_eq!(fs.getattr(ino, Some(handle), Blocking::Yes).unwrap().ino, ino);
            for range in advice_ranges(bytes, page()) {
                let size = (range.end - range.start).next_multiple_of(page()) as u32;
                pieces.push((range.start, read(fs, handle, range.start, size, true)));
            }
            assert_eq!(fs.handles.readahead_handles(ino.node()), (1, 1));
            fs.release(handle);
        }
        assert_eq!(fs.handles.readahead_handles(0).1, 0);
        pieces
    }

    #[test]
    fn read_ahead_bytes_are_those_that_the_reader_would_read() {
        for name in ["lod0.raw", "lod0.npy", "lod0.by-crossline.npy"] {
            let (fs, requests) = demo(64 << 20, false);
            let path = format!("north.zgy/data/{name}");
            let plain = open(&fs, &path);
            let whole: Vec<u8> = (0..16).flat_map(|n| read(&fs, plain, n << 20, 1 << 20, false)).collect();
            assert!(whole.len() >= 9 << 20 && requests.lock().is_empty(), "these reads are not cached");
            let handle = open(&fs, &path);
            let (mut at, mut ahead, mut markers) = (0u64, 0, 0);
            let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
            while at < whole.len() as u64 {
                if let Some((_, piece)) = pieces.iter().find(|(from, _)| *from == at) {
                    assert_eq!(*piece, whole[at as usize..][..piece.len()], "{name} at {at}");
                    at += piece.len() as u64;
                    ahead += piece.len();
                    continue;
                }
                // a marker page is answered from memory, and nothing of the array is read for it
                let is_marker = pieces.iter().any(|(from, _)| *from == at + page());
                let size = if is_marker { page() as u32 } else { 128 << 10 };
                // a read of more than the page gets more
                let two = read(&fs, plain, at, 2 * page() as u32, is_marker);
                assert!(
                    whole[at as usize..].starts_with(&two)
                        && two.len() as u64 == (2 * page()).min(whole.len() as u64 - at)
                );
                let source = fs.counters.bytes_decoded.get() + fs.counters.cache_hits.get();
                let bytes = read(&fs, handle, at, size, true);
                assert_eq!(bytes, whole[at as usize..][..bytes.len()], "{name} at {at}");
                if is_marker {
                    assert_eq!(fs.counters.bytes_decoded.get() + fs.counters.cache_hits.get(), source);
                    markers += 1;
                }
                at += bytes.len() as u64;
                pieces.extend(read_ahead(&fs, &requests));
            }
            assert!(ahead > whole.len() / 2 && markers >= 3, "{name}: {ahead} bytes ahead, {markers} marker pages");
            assert_eq!(fs.counters.errors.get(), 0);
        }
    }

    #[test]
    fn without_the_page_cache_nothing_is_read_ahead() {
        for direct_io in [true, false] {
            let (fs, requests) = demo(64 << 20, direct_io);
            let file = open(&fs, "north.zgy/data/lod0.raw");
            for n in 0..72 {
                assert!(!read(&fs, file, n << 17, 128 << 10, direct_io).is_empty());
            }
            assert!(requests.lock().is_empty());
        }
    }

    #[test]
    fn a_tight_cache_stops_read_ahead() {
        for (cache_size, few) in [(64 << 20, false), (512 << 10, true)] {
            let (fs, requests) = demo(cache_size, false);
            let file = open(&fs, "north.zgy/data/lod0.raw");
            for n in 0..72 {
                read(&fs, file, n << 17, 128 << 10, true);
            }
            let end = requests.lock().last().map_or(0, |(.., bytes)| bytes.end);
            assert_eq!(end < 3 << 20, few, "{end} with a cache of {cache_size}");
        }
    }

    #[test]
    fn a_file_whose_content_was_unknown_for_a_moment_is_read_again() {
        let (fs, _) = demo(64 << 20, false);
        for path in ["north.zgy/dataset.json", "north.zgy/data/lod0.json", "north.zgy/data/lod0.npy"] {
            let handle = open(&fs, path);
            let whole = read(&fs, handle, 0, 4096, true);
            let set = |state| {
                let Some(Handle::File(file)) = fs.handles.get(handle).as_deref().map(|handle| match handle {
                    Handle::File(file) => Handle::File(Arc::clone(file)),
                    _ => panic!("a file"),
                }) else {
                    panic!("it is open")
                };
                fs.handles.replace(handle, &file, Arc::new(file.outdated(state, 0)), |_| true);
            };
            set(ContentState::Unknown);
            assert_eq!(read(&fs, handle, 0, 4096, true), whole, "{path}");
            set(ContentState::Stale);
            let (done, answer) = mpsc::channel();
            let request = ReadRequest { handle, offset: 0, size: 4096, cached: true };
            fs.read(request, move |bytes| done.send(bytes.map(<[u8]>::to_vec)).unwrap());
            assert_eq!(answer.recv_timeout(Duration::from_secs(60)).unwrap(), Err(FsError::Io), "{path}");
        }
    }

    #[test]
    fn a_file_without_a_reader_is_not_opened_for_readahead() {
        let (fs, requests) = demo(64 << 20, false);
        let ino = find(&fs, "north.zgy/data/lod0.raw");
        assert_eq!(fs.open_for_readahead(ino).unwrap_err(), FsError::NotFound);
        let file = fs.open(ino, Blocking::Yes).unwrap().handle;
        assert_eq!(fs.open_for_readahead(ino).unwrap_err(), FsError::NotFound);
        for n in 0..3 {
            read(&fs, file, n << 17, 128 << 10, true);
        }
        assert!(!requests.lock().is_empty());
        fs.release(fs.open_for_readahead(ino).unwrap().handle);
        fs.release(file);
        assert_eq!(fs.open_for_readahead(ino).unwrap_err(), FsError::NotFound);
        assert!(requests.lock().is_empty(), "requests for a closed file are cancelled");
    }
}
