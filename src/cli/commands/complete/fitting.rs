//! What fits at the cursor.

/// A word that fits, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub word: String,
    pub help: String,
}

/// What fits at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fitting {
    Words(Vec<Candidate>),
    Paths(Vec<String>),
    /// Any file, or any folder.
    Files,
    Folders,
}
