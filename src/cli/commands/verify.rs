//! `volfs verify`: reads and decodes every brick below some paths, and prints what cannot be read.

mod json;
mod printer;
mod progress_bar;
mod text;
mod totals;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use self::printer::{Printer, Style};
use crate::catalog::CatalogError;
use crate::cli::args::VerifyArgs;
use crate::cli::chosen_source::checked_source;
use crate::cli::error::CliError;
use crate::cli::interrupt::{self, Interrupts};
use crate::cli::machine::limits;
use crate::cli::mounts::source_behind::source_behind;
use crate::cli::output;
use crate::cli::progress_bar::Bar;
use crate::cli::text::escape;
use crate::format::registry;
use crate::memory::limit_arenas;
use crate::source::Origin;
use crate::verify::{Datasets, Place, Verification, VerifyOptions};

/// The most entries that are kept of what is bad in one dataset, and with `--all`.
const ENTRIES: usize = 1000;
const ALL_ENTRIES: usize = 100_000;
/// A level is given up when more bricks than this cannot be read: a small file can claim 2^60.
const MOST_BAD: u64 = 1 << 22;

/// Checks every brick below some paths.
pub(crate) fn run(args: &VerifyArgs) -> Result<(), CliError> {
    // before there are threads, which inherit the mask
    let interrupts = Interrupts::block();
    limit_arenas();
    // from now on, since already a look at a path may hang
    let started = Arc::new(OnceLock::<(Arc<Verification>, Arc<Printer>)>::new());
    let running = Arc::clone(&started);
    interrupts.on_arrival(move || {
        if let Some((verification, printer)) = running.get() {
            verification.interrupt();
            // fails only if the output cannot be written, and the process ends anyway
            drop(printer.finish(true));
        }
    });
    let (follow_links, store_options) = (args.follow_links, args.store_option.clone());
    let read = Origin { follow_links, store_options, ..Origin::default() };
    let places = args.paths.iter().map(|path| place(path, &read)).collect::<Result<Vec<_>, _>>()?;
    let first = places.first().map(|place| place.path.clone()).unwrap_or_default();
    let cannot_list = |(source_path, error): (PathBuf, CatalogError)| CliError::ListSource { source_path, error };
    let datasets = Datasets::new(registry(), places, &read, args.zfp.decoder()).map_err(cannot_list)?;
    let options = VerifyOptions {
        quick: args.quick,
        threads: args.threads.map_or_else(limits::default_threads, usize::from),
        most: if args.all { ALL_ENTRIES } else { ENTRIES },
        most_bad: MOST_BAD,
    };
    let bar = Bar::new(progress_bar::COUNTING);
    let style = Style { json: args.json, quick: args.quick, all: args.all };
    let printer = Arc::new(Printer::new(style, bar.clone()));
    let sink = Arc::clone(&printer);
    let verification = Arc::new(Verification::new(datasets, options, move |report| sink.add(&report)));
    let shown = progress_bar::follow(&bar, &verification, args.quick);
    drop(started.set((Arc::clone(&verification), Arc::clone(&printer))));
    verification.run();
    if verification.is_interrupted() {
        interrupt::wait_for_end();
    }
    drop(shown);
    let totals = printer.finish(false)?;
    if totals.datasets == 0 && !args.json {
        let (place, formats) = (escape::path(&first), registry().names());
        output::note(&format!("no volumes found below {place}; this version reads {formats}"));
    }
    match (totals.bad_datasets, totals.unread_datasets) {
        (0, 0) => Ok(()),
        (0, unread) => Err(CliError::UnreadVolumes { unread, of: totals.datasets }),
        (bad, _) => Err(CliError::BadVolumes { bad, of: totals.datasets }),
    }
}

/// Finds what a path means: for one inside a mount its source, which is then called by its own name.
fn place(typed: &Path, read: &Origin) -> Result<Place, CliError> {
    let behind = source_behind(typed, &read.store_options)?;
    let path = behind.clone().unwrap_or_else(|| typed.to_owned());
    let origin = checked_source(&Origin { path, ..read.clone() })?;
    let name = if origin.is_url() { origin.path.clone() } else { behind.unwrap_or_else(|| typed.to_owned()) };
    Ok(Place { name, path: origin.path })
}
