//! Reads of open files, and what their readers are given before they ask.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ahead::{Asked, Piece};
use super::handles::{Handle, OpenFile};
use super::{FsError, Ino, Volfs};
use crate::array::{ReadError, Request};
use crate::memory::Buffer;
use crate::pool::Lane;
use crate::view::{ArrayFile, Content};

/// Pieces on their way to the kernel's page cache: what is beyond is left for the kernel to ask for.
const GIVEN: usize = 32;

/// A read of an open file.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The file.
    pub ino: Ino,
    /// Its handle.
    pub handle: u64,
    /// The first byte.
    pub offset: u64,
    /// How many bytes, fewer at the end of the file.
    pub size: u32,
    /// Whether the kernel will keep them in its page cache.
    pub cached: bool,
}

impl Volfs {
    /// Reads from an open file. `done` gets the bytes, fewer at the end of the file: from within this call if nothing has
    /// to be waited for, else from a thread of the pool.
    pub fn read(self: &Arc<Self>, read: Read, done: impl FnOnce(Result<&[u8], FsError>) + Send + 'static) {
        let Read { ino, handle, offset, size, cached } = read;
        self.counters.reads.add(1);
        let Some(handle) = self.handles.get(handle) else { return done(Err(FsError::BadHandle)) };
        let Handle::File(file) = &*handle else { return done(Err(FsError::IsAFolder)) };
        let length = u64::from(size).min(file.content.len().saturating_sub(offset));
        match &file.content {
            Content::Bytes(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                self.counters.bytes_read.add(length);
                done(Ok(&bytes[start..start + length as usize]));
            }
            Content::Array(array) => {
                let follows = if cached && length > 0 && self.pages.get().is_some() && !self.options.direct_io {
                    file.runs.note(Asked { offset, length, file: array.len(), plane: array.plane_bytes() })
                } else {
                    Vec::new()
                };
                if let Some(page) = file.runs.held_back(offset, length) {
                    done(Ok(&page));
                } else {
                    let (fs, of) = (Arc::clone(self), Arc::clone(&handle));
                    self.read_array(file, array, offset..offset + length, Lane::new(file.node.into()), move |read| {
                        let read = read.map_err(|e| fs.report(&of, &e));
                        match &read {
                            Ok(bytes) => fs.counters.bytes_read.add(bytes.len() as u64),
                            Err(_) => fs.counters.errors.add(1),
                        }
                        done(read.as_deref().map_err(Clone::clone));
                    });
                }
                for piece in follows {
                    self.give(ino, &handle, piece);
                }
            }
        }
    }

    /// Reads a piece on a thread of the pool, and gives it to its reader.
    fn give(self: &Arc<Self>, ino: Ino, handle: &Arc<Handle>, piece: Piece) {
        let Handle::File(file) = &**handle else { return };
        let lane = Lane::new(file.node.into()).giving();
        let Some(given) = Given::begin(self) else { return };
        let (fs, handle) = (Arc::clone(self), Arc::clone(handle));
        self.pool.submit(lane, move || {
            let Handle::File(file) = &*handle else { return };
            let Content::Array(array) = &file.content else { return };
            if piece.is_late() {
                return;
            }
            fs.read_array(file, array, piece.bytes.clone(), lane, move |read| {
                let fs = &given.fs;
                // what is wrong with it is the matter of who asks for it
                if let (Ok(bytes), Some(pages)) = (read, fs.pages.get()) {
                    fs.counters.bytes_read.add(bytes.len() as u64);
                    piece.give(ino, &bytes, &**pages);
                }
            });
        });
    }

    fn read_array(
        &self,
        open: &OpenFile,
        file: &ArrayFile,
        bytes: Range<u64>,
        lane: Lane,
        done: impl FnOnce(Result<Buffer, ReadError>) + Send + 'static,
    ) {
        let part = file.part(bytes);
        let (array, turn, scans) = (Arc::clone(file.array()), file.turn(), Some(Arc::clone(&open.scans)));
        let request = Request { array, turn, samples: part.samples.clone(), lane, scans };
        let (file, buffers) = (file.clone(), Arc::clone(self.reader.buffers()));
        self.reader.read(request, move |stored| done(stored.map(|stored| file.assemble(&part, stored, &buffers))));
    }

    /// A line in the log, and the error that the client gets.
    fn report(&self, handle: &Handle, error: &ReadError) -> FsError {
        if let Handle::File(OpenFile { content: Content::Array(file), of: Some(of), .. }) = handle {
            self.reports.add(of, file.array().info(), error);
        }
        FsError::Io
    }
}

/// A piece on its way to the kernel's page cache, however that ends.
struct Given {
    fs: Arc<Volfs>,
}

impl Given {
    /// One more, unless there are too many.
    fn begin(fs: &Arc<Volfs>) -> Option<Self> {
        let more = |given| (given < GIVEN).then_some(given + 1);
        fs.given.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self { fs: Arc::clone(fs) })
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.fs.given.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;
    use std::sync::{Mutex, mpsc};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::fs::{Options, PageCache};
    use crate::source::Wait;

    type Stored = Arc<Mutex<Vec<(u64, Vec<u8>)>>>;

    struct Pages(Stored);

    impl PageCache for Pages {
        fn store(&self, _: Ino, offset: u64, bytes: &[u8]) {
            self.0.lock().unwrap().push((offset, bytes.to_vec()));
        }
    }

    fn demo(direct_io: bool) -> (Arc<Volfs>, Stored) {
        let options = Options {
            source: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/demo"),
            cache_size: 4 << 20,
            threads: 2,
            direct_io,
            follow_links: false,
            quality: None,
            allow_other: false,
            shown: Vec::new(),
        };
        let fs = Arc::new(Volfs::new(options, Arc::default()).unwrap());
        let stored = Stored::default();
        fs.give_ahead(Box::new(Pages(Arc::clone(&stored))));
        (fs, stored)
    }

    fn open(fs: &Volfs, path: &str) -> (Ino, u64) {
        let step = |parent, name| fs.lookup(parent, OsStr::new(name), Wait::Yes).unwrap().ino;
        let ino = path.split('/').fold(Ino(1), step);
        (ino, fs.open(ino, Wait::Yes).unwrap().handle)
    }

    fn read(fs: &Arc<Volfs>, (ino, handle): (Ino, u64), offset: u64, size: u32, cached: bool) -> Vec<u8> {
        let (done, answer) = mpsc::channel();
        fs.read(Read { ino, handle, offset, size, cached }, move |bytes| done.send(bytes.unwrap().to_vec()).unwrap());
        answer.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    /// Waits until nothing is on its way any more.
    fn settle(fs: &Volfs) {
        while fs.given.load(Ordering::Relaxed) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn who_reads_in_order_is_given_the_bytes_that_he_would_read() {
        for name in ["lod0.raw", "lod0.npy", "lod0.by-crossline.npy"] {
            let (fs, stored) = demo(false);
            let path = format!("north.zgy/data/{name}");
            let whole: Vec<u8> = {
                let file = open(&fs, &path);
                (0..10).flat_map(|n| read(&fs, file, n << 20, 1 << 20, false)).collect()
            };
            assert!(whole.len() >= 9 << 20 && stored.lock().unwrap().is_empty(), "these reads are not cached");
            let file = open(&fs, &path);
            let mut at = 0u64;
            while at < whole.len() as u64 {
                // what was given is not asked for, but for the page that was held back
                let given = stored.lock().unwrap().iter().find(|(from, _)| *from == at).map(|(_, bytes)| bytes.len());
                at += match given {
                    Some(length) => length as u64,
                    None if stored.lock().unwrap().iter().any(|(from, _)| *from == at + 4096) => {
                        let page = read(&fs, file, at, 4096, true);
                        assert_eq!(page, whole[at as usize..][..4096], "{name}");
                        4096
                    }
                    None => {
                        let window = read(&fs, file, at, 128 << 10, true);
                        assert_eq!(window, whole[at as usize..][..window.len()], "{name}");
                        window.len() as u64
                    }
                };
                settle(&fs);
            }
            let stored = stored.lock().unwrap();
            for (offset, bytes) in &*stored {
                assert_eq!(*bytes, whole[*offset as usize..][..bytes.len()], "{name} at {offset}");
            }
            let given: usize = stored.iter().map(|(_, bytes)| bytes.len()).sum();
            assert!(given > whole.len() / 2, "{name}: {given}");
            assert!(fs.counters.bytes_decoded.get() > 0 && fs.counters.errors.get() == 0);
        }
    }

    #[test]
    fn where_nothing_is_cached_nothing_is_given() {
        let (fs, stored) = demo(true);
        let file = open(&fs, "north.zgy/data/lod0.raw");
        for n in 0..72 {
            assert!(!read(&fs, file, n << 17, 128 << 10, true).is_empty());
        }
        settle(&fs);
        assert!(stored.lock().unwrap().is_empty());
    }
}
