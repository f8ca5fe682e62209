//! Reads of open files, and of what their readers come to next.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustix::param::page_size;

use super::handles::{Handle, OpenFile};
use super::runs::{Asked, is_left, left_before};
use super::{FsError, Ino, Opened, Volfs};
use crate::array::{ReadError, Request};
use crate::pool::Bulkhead;
use crate::view::Content;

/// Whoever can have the kernel ask for pages of a file that nobody has asked for yet.
pub trait ReadAhead: Send + Sync {
    /// How much it still has to ask for: errands. None if it cannot ask any more.
    fn busy(&self) -> Option<usize>;

    /// Has it ask for bytes of a file, whose path is that below the top of the mount. Neither waits nor promises anything.
    fn ask(&self, file: Ino, path: &Path, bytes: Range<u64>);

    /// Nobody reads the file any more.
    fn stop(&self, file: Ino);
}

/// Errands of reading ahead that may be under way, all readers together, and in one dataset: of sources that hang no more requests
/// than these ask for keep the kernel from asking for others.
const AT_ONCE: usize = 5;
const IN_A_DATASET: usize = 2;

/// A read of an open file.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The file's handle.
    pub handle: u64,
    /// The first byte.
    pub offset: u64,
    /// How many bytes, fewer at the end of the file.
    pub size: u32,
    /// Whether the kernel will keep them in its page cache.
    pub cached: bool,
}

/// Bytes of a page.
fn page() -> u64 {
    page_size() as u64
}

impl Volfs {
    /// From now on who reads in order has what follows asked for by `ahead`. Once only.
    pub fn read_ahead_with(&self, ahead: Box<dyn ReadAhead>) {
        if !self.options.direct_io {
            let _ = self.ahead.set(ahead);
        }
    }

    /// Opens a file for whoever reads ahead: only one that has a reader, and as it is for that reader.
    ///
    /// # Errors
    /// [`FsError::NotFound`] if it has none.
    pub fn open_ahead(&self, ino: Ino) -> Result<Opened, FsError> {
        let file = self.handles.leader(ino).ok_or(FsError::NotFound)?;
        Ok(Opened { handle: self.handles.add(Handle::Ahead(file)), uncached: false })
    }

    /// Reads from an open file. `done` gets the bytes, fewer at the end of the file: from within this call if nothing has
    /// to be waited for, else from a thread of the pool.
    pub fn read(self: &Arc<Self>, read: Read, done: impl FnOnce(Result<&[u8], FsError>) + Send + 'static) {
        self.counters.reads.add(1);
        let (file, ahead) = match self.handles.get(read.handle).as_deref() {
            Some(Handle::File(file)) => (Arc::clone(file), false),
            Some(Handle::Ahead(file)) => (Arc::clone(file), true),
            Some(Handle::Folder(_)) => return done(Err(FsError::IsAFolder)),
            None => return done(Err(FsError::BadHandle)),
        };
        let length = u64::from(read.size).min(file.content.len().saturating_sub(read.offset));
        match &file.content {
            Content::Bytes(bytes) => {
                let start = usize::try_from(read.offset).unwrap_or(usize::MAX).min(bytes.len());
                self.counters.bytes_read.add(length);
                done(Ok(&bytes[start..start + length as usize]));
            }
            Content::Array(_) if ahead => self.read_ahead(file, read, done),
            Content::Array(array) => {
                let done = self.counted(done);
                let (header, plane) = (array.header_bytes(), array.plane_bytes());
                let asked = Asked { offset: read.offset, length, file: array.len(), header, plane };
                let in_order = read.cached && length > 0;
                if !in_order {
                    return self.read_array(file, read.offset, read.size, done);
                }
                // before the answer: after it the file may be closed
                self.look_ahead(&file, asked);
                let left = is_left(read.offset, length, page());
                match left.then(|| self.left_pages.take(file.ino, read.offset)).flatten() {
                    Some(page) => done(Ok(&page)),
                    None => self.read_array(file, read.offset, read.size, done),
                }
            }
        }
    }

    /// The same, and an answer counts.
    fn counted(
        self: &Arc<Self>,
        done: impl FnOnce(Result<&[u8], FsError>) + Send + 'static,
    ) -> impl FnOnce(Result<&[u8], FsError>) + Send + 'static {
        let fs = Arc::clone(self);
        move |read| {
            match &read {
                Ok(bytes) => fs.counters.bytes_read.add(bytes.len() as u64),
                Err(_) => fs.counters.errors.add(1),
            }
            done(read);
        }
    }

    /// Reads for whoever reads ahead, and with it the page before that is left to the reader. An error counts when somebody asks for
    /// what cannot be read.
    fn read_ahead(
        self: &Arc<Self>,
        file: Arc<OpenFile>,
        read: Read,
        done: impl FnOnce(Result<&[u8], FsError>) + Send + 'static,
    ) {
        let Some((left, size)) = left_before(read.offset, page()).zip(read.size.checked_add(page() as u32)) else {
            let fs = Arc::clone(self);
            return self.read_array(file, read.offset, read.size, move |bytes| {
                done(bytes.inspect(|bytes| fs.counters.bytes_read.add(bytes.len() as u64)));
            });
        };
        let (fs, ino) = (Arc::clone(self), file.ino);
        self.read_array(file, left, size, move |bytes| {
            done(bytes.map(|bytes| {
                let (page, bytes) = bytes.split_at(bytes.len().min(page() as usize));
                fs.left_pages.put(ino, left, page);
                fs.counters.bytes_read.add(bytes.len() as u64);
                bytes
            }))
        });
    }

    /// Has what follows a read asked for, if it is likely to be wanted.
    fn look_ahead(&self, file: &Arc<OpenFile>, asked: Asked) {
        let Some(ahead) = self.ahead.get() else { return };
        let few = || {
            let (here, all) = self.handles.reading_ahead(file.ino.node());
            here < IN_A_DATASET && ahead.busy().is_some_and(|out| out + all < AT_ONCE)
        };
        let free = || !file.scans.is_tight() && few();
        let Some(bytes) = file.runs.note(asked, free) else { return };
        if let Some(path) = file.path.get_or_init(|| self.path(file.ino)) {
            self.handles.lead(file);
            ahead.ask(file.ino, path, bytes);
        }
    }

    /// Reads an array.
    fn read_array(
        self: &Arc<Self>,
        open: Arc<OpenFile>,
        offset: u64,
        size: u32,
        done: impl FnOnce(Result<&[u8], FsError>) + Send + 'static,
    ) {
        let Content::Array(file) = &open.content else { return done(Err(FsError::Io)) };
        let (bulkhead, scans) = (Bulkhead::new(open.ino.node().into()), Arc::clone(&open.scans));
        let part = file.slice(offset, size);
        let samples = part.samples.clone();
        let (array, turn) = (Arc::clone(file.array()), file.permutation());
        let request = Request { array, turn, samples, bulkhead, scans: Some(scans) };
        let fs = Arc::clone(self);
        let file = file.clone();
        self.reader.read(request, move |stored| {
            let buffers = fs.reader.buffers();
            let read = stored.map(|stored| file.assemble(&part, stored, buffers)).map_err(|e| fs.report(&open, &e));
            done(read.as_deref().map_err(Clone::clone));
        });
    }

    /// A line in the log, and the error that the client gets.
    fn report(&self, file: &OpenFile, error: &ReadError) -> FsError {
        if let OpenFile { content: Content::Array(file), of: Some(of), .. } = file {
            self.reports.add(of, file.array().info(), error);
        }
        FsError::Io
    }
}

#[cfg(test)]
mod tests {
    use crate::sync::Mutex;
    use std::ffi::OsStr;
    use std::path::PathBuf;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::fs::Options;
    use crate::fs::runs::steps;
    use crate::source::Wait;

    type Errands = Arc<Mutex<Vec<(Ino, PathBuf, Range<u64>)>>>;

    struct Messenger(Errands);

    impl ReadAhead for Messenger {
        fn busy(&self) -> Option<usize> {
            Some(0)
        }

        fn ask(&self, file: Ino, path: &Path, bytes: Range<u64>) {
            self.0.lock().push((file, path.to_owned(), bytes));
        }

        fn stop(&self, file: Ino) {
            self.0.lock().retain(|(asked, ..)| *asked != file);
        }
    }

    fn demo(cache_size: u64, direct_io: bool) -> (Arc<Volfs>, Errands) {
        let options = Options {
            source: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/demo"),
            cache_size,
            threads: 2,
            direct_io,
            follow_links: false,
            quality: None,
            allow_other: false,
            shown: Vec::new(),
        };
        let fs = Arc::new(Volfs::new(options, Arc::default()).unwrap());
        let errands = Errands::default();
        fs.read_ahead_with(Box::new(Messenger(Arc::clone(&errands))));
        (fs, errands)
    }

    fn find(fs: &Volfs, path: &str) -> Ino {
        let step = |parent, name| fs.lookup(parent, OsStr::new(name), Wait::Yes).unwrap().ino;
        path.split('/').fold(Ino::ROOT, step)
    }

    fn open(fs: &Volfs, path: &str) -> u64 {
        fs.open(find(fs, path), Wait::Yes).unwrap().handle
    }

    fn read(fs: &Arc<Volfs>, handle: u64, offset: u64, size: u32, cached: bool) -> Vec<u8> {
        let (done, answer) = mpsc::channel();
        fs.read(Read { handle, offset, size, cached }, move |bytes| done.send(bytes.unwrap().to_vec()).unwrap());
        answer.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    /// What the messenger was sent on since the last time, done as the kernel and it would: what was read ahead.
    fn run(fs: &Arc<Volfs>, errands: &Errands) -> Vec<(u64, Vec<u8>)> {
        let errands = std::mem::take(&mut *errands.lock());
        let mut pieces = Vec::new();
        for (ino, path, bytes) in errands {
            assert_eq!(find(fs, path.to_str().unwrap()), ino, "the path leads to the file");
            let handle = fs.open_ahead(ino).unwrap().handle;
            assert_eq!(fs.getattr(ino, Some(handle), Wait::Yes).unwrap().ino, ino);
            for step in steps(bytes, page()) {
                let size = (step.end - step.start).next_multiple_of(page()) as u32;
                pieces.push((step.start, read(fs, handle, step.start, size, true)));
            }
            assert_eq!(fs.handles.reading_ahead(ino.node()), (1, 1));
            fs.release(handle);
        }
        assert_eq!(fs.handles.reading_ahead(0).1, 0);
        pieces
    }

    #[test]
    fn what_is_read_ahead_are_the_bytes_that_the_reader_would_read() {
        for name in ["lod0.raw", "lod0.npy", "lod0.by-crossline.npy"] {
            let (fs, errands) = demo(64 << 20, false);
            let path = format!("north.zgy/data/{name}");
            let plain = open(&fs, &path);
            let whole: Vec<u8> = (0..16).flat_map(|n| read(&fs, plain, n << 20, 1 << 20, false)).collect();
            assert!(whole.len() >= 9 << 20 && errands.lock().is_empty(), "these reads are not cached");
            let handle = open(&fs, &path);
            let (mut at, mut ahead, mut left) = (0u64, 0, 0);
            let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
            while at < whole.len() as u64 {
                if let Some((_, piece)) = pieces.iter().find(|(from, _)| *from == at) {
                    assert_eq!(*piece, whole[at as usize..][..piece.len()], "{name} at {at}");
                    at += piece.len() as u64;
                    ahead += piece.len();
                    continue;
                }
                // a page that was left is there at once, although nothing of the array is read for it
                let is_left = pieces.iter().any(|(from, _)| *from == at + page());
                let size = if is_left { page() as u32 } else { 128 << 10 };
                let source = fs.counters.bytes_decoded.get() + fs.counters.cache_hits.get();
                let bytes = read(&fs, handle, at, size, true);
                assert_eq!(bytes, whole[at as usize..][..bytes.len()], "{name} at {at}");
                if is_left {
                    assert_eq!(fs.counters.bytes_decoded.get() + fs.counters.cache_hits.get(), source);
                    left += 1;
                }
                at += bytes.len() as u64;
                pieces.extend(run(&fs, &errands));
            }
            assert!(ahead > whole.len() / 2 && left >= 3, "{name}: {ahead} bytes ahead, {left} pages left");
            assert_eq!(fs.counters.errors.get(), 0);
        }
    }

    #[test]
    fn where_nothing_is_cached_nothing_is_read_ahead() {
        for direct_io in [true, false] {
            let (fs, errands) = demo(64 << 20, direct_io);
            let file = open(&fs, "north.zgy/data/lod0.raw");
            for n in 0..72 {
                assert!(!read(&fs, file, n << 17, 128 << 10, direct_io).is_empty());
            }
            assert!(errands.lock().is_empty());
        }
    }

    #[test]
    fn where_bricks_do_not_stay_nothing_is_read_far_ahead() {
        for (cache_size, few) in [(64 << 20, false), (512 << 10, true)] {
            let (fs, errands) = demo(cache_size, false);
            let file = open(&fs, "north.zgy/data/lod0.raw");
            for n in 0..72 {
                read(&fs, file, n << 17, 128 << 10, true);
            }
            let end = errands.lock().last().map_or(0, |(.., bytes)| bytes.end);
            assert_eq!(end < 3 << 20, few, "{end} with a cache of {cache_size}");
        }
    }

    #[test]
    fn a_file_without_a_reader_is_not_opened_ahead() {
        let (fs, errands) = demo(64 << 20, false);
        let ino = find(&fs, "north.zgy/data/lod0.raw");
        assert_eq!(fs.open_ahead(ino).unwrap_err(), FsError::NotFound);
        let file = fs.open(ino, Wait::Yes).unwrap().handle;
        assert_eq!(fs.open_ahead(ino).unwrap_err(), FsError::NotFound);
        for n in 0..3 {
            read(&fs, file, n << 17, 128 << 10, true);
        }
        assert!(!errands.lock().is_empty());
        fs.release(fs.open_ahead(ino).unwrap().handle);
        fs.release(file);
        assert_eq!(fs.open_ahead(ino).unwrap_err(), FsError::NotFound);
        assert!(errands.lock().is_empty(), "what nobody waits for is not asked for");
    }
}
