//! The first failure of a source, which may have made wrong what was concluded from its answers.

use std::sync::{Arc, OnceLock};

use super::SourceError;

/// The first failure of the system, or the first change, in a folder and in all that was opened from it: those share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstFailure(Arc<OnceLock<SourceError>>);

impl FirstFailure {
    /// Returns a result, and remembers a failure of the system or a change.
    pub(crate) fn noted<T>(&self, result: Result<T, SourceError>) -> Result<T, SourceError> {
        result.inspect_err(|error| {
            if error.is_failure_of_system() || *error == SourceError::Changed {
                let _ = self.0.set(error.clone());
            }
        })
    }

    /// Returns what was remembered.
    pub(crate) fn get(&self) -> Option<SourceError> {
        self.0.get().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_remembered_by_all_that_share_it() {
        let first = FirstFailure::default();
        let shared = first.clone();
        let too_short = SourceError::TooShort { offset: 0, length: 1, size: 0 };
        assert_eq!(first.noted(Err::<(), _>(too_short.clone())), Err(too_short), "the file's fault, not the system's");
        assert_eq!((shared.noted(Ok(1)), shared.get()), (Ok(1), None));
        let failed = SourceError::io("cannot read it", &std::io::ErrorKind::TimedOut.into());
        assert!(shared.noted(Err::<(), _>(failed.clone())).is_err());
        assert!(first.noted(Err::<(), _>(SourceError::Changed)).is_err());
        assert_eq!(first.get(), Some(failed));
    }
}
