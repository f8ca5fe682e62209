//! What a check of `volfs doctor` has found.

use crate::cli::machine::permission::Obstacle;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Prevents mounting.
    Problem,
}

impl Level {
    /// The name that is printed, also in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The severity.
    pub level: Level,
    /// What was checked.
    pub subject: &'static str,
    /// What was found.
    pub text: String,
    /// What the user can do about it.
    pub remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Ok, subject, text: text.into(), remedy: None }
    }

    pub(super) fn note(subject: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { level: Level::Note, subject, text: text.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn problem(subject: &'static str, obstacle: Obstacle) -> Self {
        Self { level: Level::Problem, subject, text: obstacle.what, remedy: Some(obstacle.remedy) }
    }
}
