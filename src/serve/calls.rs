//! Calls of the file system that may have to wait, as futures. What has to wait does so on a thread of the pool.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::problem::Problem;
use crate::fs::{Attributes, FsError, Ino, Volfs};
use crate::pool::Bulkhead;
use crate::source::Blocking;

/// How long a source may take for anything, before the request is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Calls the file system. A call that nobody waits for any more is not begun.
pub(crate) async fn call<T: Send + 'static>(
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
pub(crate) async fn await_answer<T>(answer: oneshot::Receiver<Result<T, FsError>>) -> Result<T, Problem> {
    match timeout(PATIENCE, answer).await {
        Ok(Ok(answer)) => answer.map_err(Problem::from),
        // a worker stopped in the middle
        Ok(Err(_)) => Err(Problem::Unreadable),
        Err(_) => Err(Problem::NoAnswer),
    }
}

/// Finds the file or folder of a path.
pub(crate) async fn find(fs: &Arc<Volfs>, names: &[OsString]) -> Result<Attributes, Problem> {
    find_or_nearest(fs, names).await.map_err(|(problem, _)| problem)
}

/// Finds the file or folder of a path.
pub(crate) async fn find_or_nearest(fs: &Arc<Volfs>, names: &[OsString]) -> Result<Attributes, (Problem, usize)> {
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
