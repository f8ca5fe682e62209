//! What fits at the cursor.

/// A word that fits, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub word: String,
    pub help: String,
}

/// What fits at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fitting {
    Words(Vec<Candidate>),
    Paths(Vec<String>),
    /// Any file, or any folder.
    Files,
    Folders,
}
