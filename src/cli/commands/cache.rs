//! `volfs cache`: shows what a disk cache holds, or empties it.

mod json;
mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use crate::cli::args::CacheArgs;
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::progress_bar::Bar;
use crate::cli::text::escape;
use crate::cli::text::layout::TextLayout;
use crate::cli::text::size::Size;
use crate::source::disk_cache::{Cleared, Survey};
use crate::view::json_text;

/// The bar: the number of files is not known beforehand.
const COUNTING: &str = "{spinner} {human_pos} files";

/// Prints what is in a disk cache, or removes it.
pub(crate) fn run(args: &CacheArgs) -> Result<(), CliError> {
    if args.clear {
        return clear(args);
    }
    let seen = Arc::new(AtomicU64::new(0));
    let bar = Bar::new(COUNTING);
    let drawn = Arc::clone(&seen);
    let shown = bar.follow(move |bar, _| bar.set_position(drawn.load(Relaxed)));
    let survey = Survey::of(&args.cache_folder, args.check, |files| {
        seen.store(files, Relaxed);
        true
    });
    drop(shown);
    let survey = survey?;
    if args.json {
        return output::whole(&json_text(&json::survey(&args.cache_folder, &survey)));
    }
    let mut layout = TextLayout::new(output::coloured());
    text::write(&mut layout, &args.cache_folder, &survey, SystemTime::now());
    output::whole(layout.text())
}

fn clear(args: &CacheArgs) -> Result<(), CliError> {
    let cleared = Cleared::of(&args.cache_folder)?;
    if args.json {
        return output::whole(&json_text(&json::cleared(&args.cache_folder, &cleared)));
    }
    let (place, size) = (escape::path(&args.cache_folder), Size::of(cleared.bytes));
    output::line(&format!("{place}: removed {}, {size}", text::files(cleared.files)))?;
    if cleared.foreign > 0 {
        output::note(&format!("{} not of the cache left in {place}", text::files(cleared.foreign)));
    }
    Ok(())
}
