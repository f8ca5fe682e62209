//! `volfs complete`: what a shell offers for the word at the cursor; and the scripts that ask.
//!
//! The answer is a line with the kind, and a line for each candidate with its description behind a tab. The kinds are
//! `words`, `paths` (of which the candidates that end in a slash are folders), and `files` and `folders`, which the
//! shell finds by itself.

mod fitting;
mod grammar;
mod values;
mod words;

use std::path::Path;
use std::time::Duration;

use clap::CommandFactory;

use self::fitting::{Candidate, Fitting};
use self::grammar::Wanted;
use self::words::Line;
use crate::cli::args::{Cli, CompleteArgs, Shell};
use crate::cli::deadline::{self, Output};
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::text::escape;

/// How long a folder may take to tell its names, or a volume its layers: a user waits.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Prints what fits at the cursor, or the script of a shell.
pub(crate) fn run(args: &CompleteArgs) -> Result<(), CliError> {
    if args.typed.is_empty() {
        return output::whole(script(args.shell));
    }
    let line = match args.shell {
        Shell::Bash => Line::split(args.typed.first().map_or("", String::as_str)),
        Shell::Fish => Line::quoted(&args.typed),
        Shell::Zsh => Line::plain(&args.typed),
    };
    let offer = |out: &Output<'_>| out.part(answer(args.shell, &line).as_bytes()).map(drop);
    match deadline::run_within(TIMEOUT, Path::new("."), offer) {
        // the shell would hang as well
        Err(CliError::SourceTimeout(..)) => output::whole("words\n"),
        offered => offered,
    }
}

/// Returns the completion script of a shell.
pub(crate) fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("complete/volfs.bash"),
        Shell::Zsh => include_str!("complete/volfs.zsh"),
        Shell::Fish => include_str!("complete/volfs.fish"),
    }
}

fn answer(shell: Shell, line: &Line) -> String {
    let mut cli = Cli::command();
    cli.build();
    let wanted = grammar::wanted(&cli, &line.before, &line.current);
    let (prefix, fitting) = match wanted {
        Wanted::Words(words) => (String::new(), Fitting::Words(words)),
        Wanted::Value { prefix, typed, of, command, positional, options } => {
            (prefix, values::fitting(&of, &command, &typed, &positional, &options))
        }
    };
    let (kind, candidates) = match fitting {
        Fitting::Files => return "files\n".to_owned(),
        Fitting::Folders => return "folders\n".to_owned(),
        Fitting::Words(words) => ("words", words),
        Fitting::Paths(paths) => {
            ("paths", paths.into_iter().map(|word| Candidate { word, help: String::new() }).collect())
        }
    };
    let mut text = format!("{kind}\n");
    for Candidate { word, help } in candidates {
        let mut word = prefix.clone() + &word;
        // a name with such characters cannot be typed
        if word.contains(char::is_control) {
            continue;
        }
        if shell == Shell::Bash {
            word = line.after_break(&word).to_owned();
            // which adds the slash by itself
            word.truncate(word.trim_end_matches('/').len().max(1));
        }
        text.push_str(&format!("{word}\t{}\n", escape::text(&help)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zsh(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        answer(Shell::Zsh, &Line::plain(&words))
    }

    #[test]
    fn commands_and_options_are_known() {
        let text = zsh(&["u"]);
        assert!(text.starts_with("words\numount\tTake a mount away"), "{text}");
        assert!(!zsh(&[""]).contains("complete"), "what is hidden is not offered");
        let text = zsh(&["cat", "x", "--la"]);
        assert_eq!(text, "words\n--layer\tThe layer [default: the first, or that of PATH]\n");
        assert!(zsh(&["mount", "--"]).contains("--cache-size\t") && !zsh(&["mount", "--"]).contains("called-by-mount"));
        assert_eq!(zsh(&["cat", "--format", "n"]).lines().count(), 2);
        assert_eq!(zsh(&["cat", "--format=n"]).lines().nth(1).unwrap().split('\t').next(), Some("--format=npy"));
        assert_eq!(zsh(&["cat", "--output", ""]), "files\n");
        assert_eq!(zsh(&["mount", "x", ""]), "folders\n");
        assert_eq!(zsh(&["cat", "x", "--region", ""]), "words\n");
    }

    #[test]
    fn bash_gets_what_is_behind_its_word_breaks() {
        let bash = |line: &str| answer(Shell::Bash, &Line::split(line));
        assert!(bash("volfs cat --format=n").starts_with("words\nnpy\t"));
        assert!(bash("volfs cat --format n").starts_with("words\nnpy\t"));
        assert!(bash("volfs ca").starts_with("words\ncat\t"));
    }

    #[test]
    fn the_scripts_ask_this_command() {
        for (shell, name) in [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")] {
            assert!(script(shell).contains(&format!("complete {name} -- ")));
        }
    }
}
