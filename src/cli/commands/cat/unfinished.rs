//! A file that is not complete yet, and what becomes of it after a failure or a signal.

use std::fs::File;
use std::io;

use tempfile::TempPath;

use crate::cli::interrupt;
use crate::sync::Mutex;

/// The file that is being written, known to the thread that waits for signals from its first moment on.
#[derive(Default)]
pub(crate) struct Unfinished(Mutex<State>);

#[derive(Default)]
enum State {
    /// There is nothing to clear up.
    #[default]
    Nothing,
    Begun(Begun),
    /// A signal has arrived, and is about to end the process.
    Interrupted,
}

/// How a file is written.
pub(crate) enum Begun {
    /// Under a temporary name, and removed if it is not completed.
    Apart(TempPath),
    /// Under its own name, and emptied if it is not completed: half of it could be taken for the whole.
    InPlace(File),
}

impl Begun {
    fn clear_up(self) {
        match self {
            Self::Apart(partial) => drop(partial),
            // there is nothing left to do if the system refuses
            Self::InPlace(file) => drop(file.set_len(0)),
        }
    }
}

/// What [`Unfinished::interrupt`] has done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cleared {
    Removed,
    Emptied,
}

impl Unfinished {
    /// Begins the file by `begin`, unless a signal has arrived.
    pub(crate) fn begin(&self, begin: impl FnOnce() -> io::Result<(File, Begun)>) -> io::Result<File> {
        let mut state = self.0.lock();
        if matches!(*state, State::Interrupted) {
            drop(state);
            interrupt::wait_for_end();
        }
        let (file, begun) = begin()?;
        *state = State::Begun(begun);
        Ok(file)
    }

    /// Calls `write`. What is written in place must not follow after a signal has emptied the file, nor hold up a
    /// signal if it is written elsewhere, for instance to a pipe.
    pub(crate) fn write<T>(&self, write: impl FnOnce() -> T) -> T {
        let state = self.0.lock();
        match &*state {
            State::Begun(Begun::InPlace(_)) => write(),
            State::Interrupted => {
                drop(state);
                interrupt::wait_for_end()
            }
            State::Nothing | State::Begun(Begun::Apart(_)) => {
                drop(state);
                write()
            }
        }
    }

    /// Calls `complete` with the file, which is complete from then on, if there is one. A signal waits for it, or has
    /// arrived before.
    pub(crate) fn complete<T>(&self, complete: impl FnOnce(Option<Begun>) -> T) -> T {
        let mut state = self.0.lock();
        match std::mem::take(&mut *state) {
            State::Nothing => complete(None),
            State::Begun(begun) => complete(Some(begun)),
            State::Interrupted => {
                *state = State::Interrupted;
                drop(state);
                interrupt::wait_for_end()
            }
        }
    }

    /// Clears up after a failure.
    pub(crate) fn abandon(&self) {
        let mut state = self.0.lock();
        match std::mem::take(&mut *state) {
            State::Begun(begun) => begun.clear_up(),
            State::Interrupted => *state = State::Interrupted,
            State::Nothing => {}
        }
    }

    /// Clears up before a signal ends the process: nothing is begun, written or completed from now on. Returns what
    /// became of the file, if it was not complete.
    pub(crate) fn interrupt(&self) -> Option<Cleared> {
        match std::mem::replace(&mut *self.0.lock(), State::Interrupted) {
            State::Begun(begun) => {
                let cleared = if matches!(begun, Begun::Apart(_)) { Cleared::Removed } else { Cleared::Emptied };
                begun.clear_up();
                Some(cleared)
            }
            State::Nothing | State::Interrupted => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;

    use super::*;

    #[test]
    fn a_signal_finds_a_file_that_is_just_being_created() {
        let folder = tempfile::tempdir().unwrap();
        let unfinished = Arc::new(Unfinished::default());
        let (created, is_created) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let writer = {
            let (unfinished, folder) = (Arc::clone(&unfinished), folder.path().to_owned());
            thread::spawn(move || {
                let begin = || {
                    let (file, partial) = tempfile::NamedTempFile::new_in(folder)?.into_parts();
                    created.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    Ok((file, Begun::Apart(partial)))
                };
                drop(unfinished.begin(begin).unwrap());
            })
        };
        is_created.recv().unwrap();
        let signal = thread::spawn(move || unfinished.interrupt());
        go_on.send(()).unwrap();
        writer.join().unwrap();
        assert_eq!(signal.join().unwrap(), Some(Cleared::Removed));
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_written_in_place_is_emptied() {
        let begun = |file: &File| {
            file.set_len(5).unwrap();
            let (unfinished, file) = (Unfinished::default(), file.try_clone().unwrap());
            drop(unfinished.begin(|| Ok((file.try_clone()?, Begun::InPlace(file)))).unwrap());
            unfinished
        };
        let file = tempfile::tempfile().unwrap();
        begun(&file).abandon();
        assert_eq!(file.metadata().unwrap().len(), 0);
        assert_eq!(begun(&file).interrupt(), Some(Cleared::Emptied));
        assert_eq!(file.metadata().unwrap().len(), 0);
        let complete = begun(&file);
        complete.complete(drop);
        assert_eq!(complete.interrupt(), None);
        assert_eq!(file.metadata().unwrap().len(), 5);
    }
}
