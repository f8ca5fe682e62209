//! The arguments of `volfs complete`, which the completion scripts of shells call.

use clap::{Args, ValueEnum};

/// The arguments of `volfs complete`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETE_EXAMPLE)]
pub(crate) struct CompleteArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,

    /// What is typed so far: for bash the line up to the cursor, for others its words; without, prints the script
    #[arg(last = true, allow_hyphen_values = true)]
    pub typed: Vec<String>,
}

/// The shells that there are scripts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// Bash, with or without the package bash-completion
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
}

const COMPLETE_EXAMPLE: &str = "\
Example:
  source <(volfs complete bash)
  source <(volfs complete zsh)
  volfs complete fish | source";
