//! Generates the manual pages and the shell completions: `cargo run --example generate -- FOLDER YYYY-MM-DD`.
//!
//! The pages of the commands come from the definitions of the command line, so they agree with `volfs --help`;
//! volfs-layout(5) comes from docs/mount-layout.md. Used by scripts/make_docs.sh.

mod markdown;
mod pages;
mod sections;

use std::env;
use std::fs;
use std::io;
use std::path::Path;

use volfs::internals::completion_script;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [folder, date] = arguments.as_slice() else {
        return Err(io::Error::other("give the folder to write to, and the date of the pages"));
    };
    let completions = Path::new(folder).join("completions");
    let man = Path::new(folder).join("man");
    fs::create_dir_all(&completions)?;
    fs::create_dir_all(&man)?;
    // the names by which the shells find them
    for (shell, name) in [("bash", "volfs.bash"), ("zsh", "_volfs"), ("fish", "volfs.fish")] {
        fs::write(completions.join(name), completion_script(shell).unwrap_or_default())?;
    }
    pages::write(&man, date)?;
    let layout = include_str!("../../docs/mount-layout.md");
    fs::write(man.join("volfs-layout.5"), markdown::page("volfs-layout", 5, date, sections::LAYOUT_NAME, layout))
}
