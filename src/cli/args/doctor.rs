//! The arguments of `volfs doctor`.

use clap::Args;

/// The arguments of `volfs doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLE)]
pub(crate) struct DoctorArgs {
    /// Print JSON for programs
    ///
    /// `can_mount`, and `findings`: a list of level (ok, note, problem), subject, text and remedy.
    #[arg(long)]
    pub json: bool,
}

const DOCTOR_EXAMPLE: &str = "\
Example:
  volfs doctor
  volfs doctor --json | jq .can_mount";
