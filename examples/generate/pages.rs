//! The manual pages of the program and of its commands.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::sections::{self, Entry};

/// Writes one page for the program and one for each command.
pub fn write(folder: &Path, date: &str) -> io::Result<()> {
    // `volfs help` has no page of its own
    let mut cli = volfs::internals::command().disable_help_subcommand(true);
    cli.build();
    let version = cli.get_version().unwrap_or_default();
    let commands = cli.get_subcommands().filter(|command| !command.is_hide_set());
    let all: Vec<&Command> = std::iter::once(&cli).chain(commands).collect();
    for command in &all {
        let name = page_name(command);
        let others = all.iter().map(|c| page_name(c)).filter(|n| *n != name).map(|n| format!("{n}(1)"));
        let others: Vec<String> = others.chain(sections::SEE_ALSO.iter().map(|page| (*page).to_owned())).collect();
        let mut page = format!(".TH {} 1 \"{date}\" \"volfs {version}\" \"volfs\"\n", name.to_uppercase()).into_bytes();
        let parts = Man::new((*command).clone());
        parts.render_name_section(&mut page)?;
        let usage = (*command).clone().render_usage().to_string();
        let mut synopsis = Roff::new();
        synopsis.control("SH", ["SYNOPSIS"]).text([roman(usage.trim_start_matches("Usage: "))]);
        let aliases: Vec<&str> = command.get_visible_aliases().collect();
        if !aliases.is_empty() {
            synopsis.control("PP", []).text([roman(format!("Other name of the command: {}", aliases.join(", ")))]);
        }
        synopsis.to_writer(&mut page)?;
        parts.render_description_section(&mut page)?;
        parts.render_options_section(&mut page)?;
        if command.has_subcommands() {
            parts.render_subcommands_section(&mut page)?;
        }
        let about = sections::of(command.get_name());
        list("FILES", about.files, &mut page)?;
        list("ENVIRONMENT", about.environment, &mut page)?;
        list("EXIT STATUS", about.exit_status, &mut page)?;
        write_after_options(command, &mut page)?;
        let mut end = Roff::new();
        end.control("SH", ["SEE ALSO"]).text([roman(others.join(", "))]);
        end.to_writer(&mut page)?;
        fs::write(folder.join(format!("{name}.1")), normalised(&String::from_utf8_lossy(&page)))?;
    }
    Ok(())
}

fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// Writes a section that is a list, if it has entries.
fn list(title: &str, entries: &[Entry], page: &mut Vec<u8>) -> io::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (name, text) in entries {
        roff.control("TP", []).text([bold(*name)]).text([roman(*text)]);
    }
    roff.to_writer(page)
}

/// Writes the help after the options: examples with their line breaks, and the rest as paragraphs.
fn write_after_options(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let rest = command.get_after_long_help().or_else(|| command.get_after_help());
    let rest = rest.map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::new();
    for paragraph in rest.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        let text = match paragraph.split_once(':') {
            Some(("Example", text)) => {
                roff.control("SH", ["EXAMPLES"]);
                text
            }
            // in a section of its own
            Some(("Exit status", _)) => continue,
            _ => {
                roff.control("PP", []);
                paragraph
            }
        };
        let mut verbatim = false;
        for line in text.trim_matches(|c| c == '\n').lines() {
            let indented = line.starts_with("  ");
            if indented != verbatim {
                roff.control(if indented { "EX" } else { "EE" }, []);
                verbatim = indented;
            }
            roff.text([roman(if indented { line } else { line.trim() })]);
        }
        if verbatim {
            roff.control("EE", []);
        }
    }
    roff.to_writer(page)
}

/// Keeps one copy of the preamble, at the top, and turns empty lines in the help of an option into vertical space.
fn normalised(page: &str) -> String {
    let (preamble, text): (Vec<&str>, Vec<&str>) =
        page.lines().partition(|line| line.starts_with(".ie ") || line.starts_with(".el "));
    let preamble = preamble.into_iter().take(2);
    preamble
        .map(str::to_owned)
        .chain(text.into_iter().map(|line| if line.is_empty() { ".sp".to_owned() } else { bold_code(line) }))
        .flat_map(|line| [line, "\n".to_owned()])
        .collect()
}

/// Puts what stands between backquotes in bold.
fn bold_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    // a single one is no quote
    if parts.len() & 1 == 0 {
        return line.to_owned();
    }
    let bold = |(n, part): (usize, &&str)| if n % 2 == 1 { format!("\\fB{part}\\fR") } else { (*part).to_owned() };
    parts.iter().enumerate().map(bold).collect()
}
