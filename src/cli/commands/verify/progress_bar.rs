//! What the progress bar shows: bricks, bytes, rate and time left.

use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;

use crate::cli::progress_bar::{Bar, Shown, spawn, style};
use crate::cli::text::size::Size;
use crate::verify::Verification;

/// The bar while the number of all bricks is not known, and then.
pub(crate) const COUNTING: &str = "{spinner} {human_pos} bricks{msg}, counting all";
const COUNTED: &str = "{spinner} [{bar:24}] {percent}% of {human_len} bricks{msg}, {eta} left";

/// Shows the progress of a verification until the result is dropped; `quick` if no bytes are read.
pub(crate) fn follow(bar: &Bar, verification: &Arc<Verification>, quick: bool) -> Shown {
    if !bar.is_hidden() {
        // opens every volume once more, and so is worth it only for people
        let counting = Arc::clone(verification);
        spawn(move || counting.count());
    }
    let verification = Arc::clone(verification);
    bar.follow(move |bar, since| draw(bar, &verification, since, quick))
}

fn draw(bar: &ProgressBar, verification: &Verification, since: Duration, quick: bool) {
    let progress = verification.progress();
    let done = progress.bricks.get();
    if let Some(total) = progress.total()
        && bar.length() != Some(total.max(done))
    {
        bar.set_length(total.max(done));
        bar.set_style(style(COUNTED));
    }
    let mut message = String::new();
    if !quick {
        let bytes = progress.bytes.get();
        let rate = bytes as f64 / since.as_secs_f64().max(0.001);
        message = format!(", {}, {}/s", Size::of(bytes), Size::of(rate as u64));
    }
    for (count, what) in [(progress.bad.get(), "bad"), (progress.unread.get(), "unread")] {
        if count > 0 {
            message.push_str(&format!(", {count} {what}"));
        }
    }
    bar.set_message(message);
    bar.set_position(done);
}

#[cfg(test)]
mod tests {
    use indicatif::ProgressStyle;

    use super::*;

    #[test]
    fn the_templates_are_valid() {
        for template in [COUNTING, COUNTED] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
