//! Paths of URLs as names of the tree, and the calls of the file system as futures: what has to wait does so on a
//! thread of the pool.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::timeout;

use super::response::Problem;
use crate::fs::{Attributes, FsError, Ino, Maker, Opened, ReadRequest, Volfs};
use crate::memory::Buffer;
use crate::pool::Bulkhead;
use crate::source::Blocking;
use crate::sync::Mutex;
use crate::view::{BoxOf, Content, LayerRef, Rows};
use crate::volume::ArrayInfo;

/// The longest name that a file system has.
const NAME_MAX: usize = 255;
/// What is encoded in a link: all but the characters that mean nothing in a URL.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// How long a source may take for anything before the request fails.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The path of a URL as names of the tree.
///
/// RFC 3986, section 3.3: segments between slashes, percent-encoded. A segment is decoded once, which gives the name as
/// it is in a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreePath {
    /// The names from the root on.
    pub(super) names: Vec<OsString>,
    /// Whether it ends with a slash, so that a folder is meant.
    pub(super) folder: bool,
}

impl TreePath {
    /// Reads the path of a URL. Fails with [`Problem::NotFound`] for names that nothing can have.
    pub(super) fn read(path: &str) -> Result<Self, Problem> {
        let Some(path) = path.strip_prefix('/') else { return Err(Problem::Bad("the path begins with /".into())) };
        if path.is_empty() {
            return Ok(Self { names: Vec::new(), folder: true });
        }
        let (path, folder) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
        let names = path.split('/').map(name).collect::<Result<_, _>>()?;
        Ok(Self { names, folder })
    }
}

/// Decodes one segment. Names that mean other folders, and those with a slash, are refused.
fn name(segment: &str) -> Result<OsString, Problem> {
    let bytes: Vec<u8> = percent_decode_str(segment).collect();
    if bytes.contains(&0) {
        return Err(Problem::Bad("the path has a zero byte".into()));
    }
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') || bytes.len() > NAME_MAX {
        return Err(Problem::NotFound);
    }
    Ok(OsString::from_vec(bytes))
}

/// Returns a name as a segment of a URL.
pub(super) fn segment(name: &OsStr) -> String {
    percent_encode(name.as_bytes(), ENCODED).to_string()
}

/// Calls the file system. A call whose client is gone is not begun.
pub(super) async fn call<T: Send + 'static>(
    fs: &Arc<Volfs>,
    bulkhead: Bulkhead,
    call: impl Fn(&Arc<Volfs>, Blocking) -> Result<T, FsError> + Send + 'static,
) -> Result<T, Problem> {
    let (send, receive) = oneshot::channel();
    let waiting = Arc::new(());
    let awaited = Arc::downgrade(&waiting);
    let call_if_awaited = move |fs: &Arc<Volfs>, blocking| match awaited.strong_count() {
        0 => Err(FsError::Stale),
        _ => call(fs, blocking),
    };
    fs.answer(bulkhead, call_if_awaited, move |result| drop(send.send(result)));
    let answer = await_answer(receive).await;
    drop(waiting);
    answer
}

/// Waits for an answer of the file system.
pub(super) async fn await_answer<T>(answer: oneshot::Receiver<Result<T, FsError>>) -> Result<T, Problem> {
    match timeout(TIMEOUT, answer).await {
        Ok(Ok(answer)) => answer.map_err(Problem::from),
        // a worker stopped in the middle
        Ok(Err(_)) => Err(Problem::Unreadable),
        Err(_) => Err(Problem::NoAnswer),
    }
}

/// Finds the file or folder of a path. An error comes with the number of names that lead to a folder.
pub(super) async fn find(fs: &Arc<Volfs>, names: &[OsString]) -> Result<Attributes, (Problem, usize)> {
    let root = call(fs, Volfs::bulkhead(Ino::ROOT), |fs, blocking| fs.getattr(Ino::ROOT, None, blocking)).await;
    let mut found = root.map_err(|problem| (problem, 0))?;
    for (n, name) in names.iter().enumerate() {
        let folders = if found.folder { n } else { n.saturating_sub(1) };
        let (parent, name) = (found.ino, name.clone());
        let bulkhead = fs.bulkhead_of_name(parent, &name);
        let looked_up = call(fs, bulkhead, move |fs, blocking| fs.lookup(parent, &name, blocking)).await;
        found = looked_up.map_err(|problem| (problem, folders))?;
    }
    Ok(found)
}

/// A part of the memory of responses, which comes back when it is dropped; `None` is a short piece.
pub(super) type Share = Option<OwnedSemaphorePermit>;

/// A piece of a body that is being read.
pub(super) type PieceInFlight = oneshot::Receiver<Result<Bytes, FsError>>;

/// Bytes of a body, with the share that they hold until they are sent.
struct Piece(Buffer, #[expect(dead_code, reason = "it comes back when it is dropped")] Share);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A file or folder that is open for one response, and closed with it.
pub(super) struct Open {
    pub(super) fs: Arc<Volfs>,
    pub(super) handle: u64,
    bulkhead: Bulkhead,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.fs.release(self.handle);
    }
}

impl Open {
    pub(super) async fn file(fs: &Arc<Volfs>, ino: Ino) -> Result<(Self, Opened), Problem> {
        let open = move |fs: &Arc<Volfs>, blocking| {
            let open = Self::new(fs, ino, fs.open(ino, blocking)?.handle);
            let opened = fs.opened(open.handle).ok_or(FsError::BadHandle)?;
            Ok((open, opened))
        };
        call(fs, Volfs::bulkhead(ino), open).await
    }

    pub(super) async fn folder(fs: &Arc<Volfs>, ino: Ino) -> Result<Self, Problem> {
        let open = move |fs: &Arc<Volfs>, blocking| Ok(Self::new(fs, ino, fs.opendir(ino, blocking)?.handle));
        call(fs, Volfs::bulkhead(ino), open).await
    }

    /// Opens what `make` makes of the layer whose folder this is, which is read like a file. Fails with
    /// [`Problem::NotFound`] if it is no folder of a layer. The inner error is that of `make`, which may make something
    /// that needs no file.
    pub(super) async fn made<T: Send + 'static, E: Send + 'static>(
        fs: &Arc<Volfs>,
        folder: Ino,
        make: impl Fn(LayerRef<'_>) -> Result<(T, Option<Content>), E> + Send + Sync + 'static,
    ) -> Result<Result<(T, Option<(Self, Opened)>), E>, Problem> {
        // what was made beside the content; a refresh of the dataset makes it again
        let made = Arc::new(Mutex::new(None));
        let to = Arc::clone(&made);
        let content = move |layer: LayerRef<'_>| {
            let (made, content) = match make(layer) {
                Ok((with, content)) => (Ok(with), content),
                Err(error) => (Err(error), None),
            };
            *to.lock() = Some(made);
            // what needs no file is not opened
            content
        };
        let make: Maker = Arc::new(content);
        let open = move |fs: &Arc<Volfs>, blocking| {
            let opened = fs.open_made(folder, blocking, Arc::clone(&make));
            let made = made.lock().take();
            match (made, opened) {
                (Some(Err(error)), Err(FsError::IsAFolder)) => Ok(Err(error)),
                (Some(Ok(with)), Err(FsError::IsAFolder)) => Ok(Ok((with, None))),
                (Some(Ok(with)), Ok(reply)) => {
                    let open = Self::new(fs, folder, reply.handle);
                    let opened = fs.opened(open.handle).ok_or(FsError::BadHandle)?;
                    Ok(Ok((with, Some((open, opened)))))
                }
                (_, Err(error)) => Err(error),
                (_, Ok(reply)) => {
                    fs.release(reply.handle);
                    Err(FsError::Stale)
                }
            }
        };
        call(fs, Volfs::bulkhead(folder), open).await
    }

    fn new(fs: &Arc<Volfs>, ino: Ino, handle: u64) -> Self {
        Self { fs: Arc::clone(fs), handle, bulkhead: Volfs::bulkhead(ino) }
    }

    /// Returns whether the file still has the content of this epoch.
    pub(super) fn is_of_epoch(&self, epoch: u32) -> bool {
        self.fs.opened(self.handle).is_some_and(|opened| opened.epoch == epoch)
    }

    /// Starts to read bytes. What the client may want next is read `ahead` on a thread of the pool, while this one
    /// sends.
    pub(super) fn read(&self, offset: u64, length: usize, share: Share, ahead: bool) -> PieceInFlight {
        let (send, receive) = oneshot::channel();
        let size = u32::try_from(length).unwrap_or(u32::MAX);
        // as with O_DIRECT: there are no pages of a kernel to read ahead
        let request = ReadRequest { handle: self.handle, offset, size, cached: false };
        let fs = Arc::clone(&self.fs);
        let read = move || {
            // the client may be gone by now
            if !send.is_closed() {
                fs.read_owned(request, move |read| answer(send, read, share));
            }
        };
        if ahead {
            self.fs.pool().submit(self.bulkhead, read)
        } else {
            read()
        }
        receive
    }

    /// Opens a box of the level that the file shows, which is read like a file; with the rows if it is a table.
    pub(super) fn boxed(
        &self,
        choose: impl FnOnce(&ArrayInfo) -> Result<BoxOf, String>,
    ) -> Result<(Self, Opened, Option<Rows>), Problem> {
        let (handle, rows) = self.fs.open_box(self.handle, choose)?.map_err(Problem::Bad)?;
        let open = Self { fs: Arc::clone(&self.fs), handle, bulkhead: self.bulkhead };
        let opened = open.fs.opened(handle).ok_or(FsError::BadHandle)?;
        Ok((open, opened, rows))
    }
}

fn answer(send: oneshot::Sender<Result<Bytes, FsError>>, read: Result<Buffer, FsError>, share: Share) {
    let _ = send.send(read.map(|bytes| Bytes::from_owner(Piece(bytes, share))));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Result<(Vec<String>, bool), Problem> {
        TreePath::read(path)
            .map(|path| (path.names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect(), path.folder))
    }

    #[test]
    fn segments_are_decoded_once() {
        assert_eq!(names("/"), Ok((vec![], true)));
        assert_eq!(names("/a"), Ok((vec!["a".into()], false)));
        assert_eq!(names("/a/b%20c/"), Ok((vec!["a".into(), "b c".into()], true)));
        assert_eq!(names("/100%25%2525"), Ok((vec!["100%%25".into()], false)));
        assert_eq!(names("/%zz%"), Ok((vec!["%zz%".into()], false)));
    }

    #[test]
    fn nothing_leads_out_of_the_tree() {
        let outside = [
            "//",
            "///",
            "/a//b",
            "/..",
            "/.",
            "/a/../b",
            "/%2e%2e/x",
            "/%2E",
            "/a%2fb",
            "/a/%2F",
            "/..%2f..%2fetc",
            "/a//",
        ];
        for path in outside {
            assert_eq!(names(path), Err(Problem::NotFound), "{path}");
        }
        assert_eq!(names(&format!("/{}", "x".repeat(256))), Err(Problem::NotFound));
        for bad in ["", "a", "*", "/a%00b"] {
            assert!(matches!(names(bad), Err(Problem::Bad(_))), "{bad}");
        }
    }

    #[test]
    fn a_segment_leads_back_to_its_name() {
        for bytes in [&b"a b:c?d#e%f&\"<>'"[..], b"\xff\xfe.zgy", "für".as_bytes(), b"-_.~"] {
            let name = OsStr::from_bytes(bytes);
            let path = TreePath::read(&format!("/{}", segment(name))).unwrap();
            assert_eq!(path.names, [name]);
            assert!(!segment(name).contains([':', '"', '<', '&', '\'']));
        }
    }
}
