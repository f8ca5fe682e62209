//! `volfs complete`: what a shell offers for the word at the cursor; and the scripts that ask.
//!
//! The answer is a line with the kind, and a line for each candidate with its description behind a tab. The kinds are
//! `words`, `paths` (of which the candidates that end in a slash are folders), and `files` and `folders`, which the
//! shell finds by itself.

mod values;

use std::path::Path;
use std::time::Duration;

use clap::{Arg, Args, Command, CommandFactory, ValueEnum};

use self::values::{Candidate, Fitting};
use super::deadline::{self, Output};
use super::error::{Cause, CliError};
use super::text::escaped;
use super::{Cli, output};

#[derive(Debug, Args)]
#[command(after_help = COMPLETE_EXAMPLE)]
pub(super) struct CompleteArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,

    /// What is typed so far: for bash the line up to the cursor, for others its words; without, prints the script
    #[arg(last = true, allow_hyphen_values = true)]
    typed: Vec<String>,
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

/// The time to list a folder or to open a volume: a user waits.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Prints what fits at the cursor, or the script of a shell.
pub(super) fn run(args: &CompleteArgs) -> Result<(), CliError> {
    if args.typed.is_empty() {
        return output::print(script(args.shell));
    }
    let line = match args.shell {
        Shell::Bash => Line::split(args.typed.first().map_or("", String::as_str)),
        Shell::Fish => Line::quoted(&args.typed),
        Shell::Zsh => Line::plain(&args.typed),
    };
    let offer = |out: &Output<'_>| out.part(answer(args.shell, &line).as_bytes()).map(drop);
    match deadline::run_within(TIMEOUT, Path::new("."), offer) {
        // the shell would hang as well
        Err(error) if matches!(error.cause(), Cause::Timeout) => output::print("words\n"),
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
    let (prefix, Fitting { kind, candidates }) = line.fitting(&cli);
    let mut text = format!("{kind}\n");
    for Candidate { word, help } in candidates {
        let mut word = format!("{prefix}{word}");
        // a name with such characters cannot be typed
        if word.contains(char::is_control) {
            continue;
        }
        if shell == Shell::Bash {
            word = line.after_break(&word).to_owned();
            // bash adds the slash by itself
            word.truncate(word.trim_end_matches('/').len().max(1));
        }
        text.push_str(&format!("{word}\t{}\n", escaped(&help)));
    }
    text
}

/// The words before the cursor, without their quotes; the name of the program is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line {
    /// Those before the one at the cursor.
    before: Vec<String>,
    /// The word at the cursor, up to the cursor.
    current: String,
    /// Bytes of the current word that bash does not replace: it completes the text after `=` or `:`.
    kept: usize,
}

impl Line {
    /// Splits the line of bash up to the cursor.
    fn split(line: &str) -> Self {
        let mut words = vec![String::new()];
        let (mut kept, mut quote, mut in_word) = (0, None, false);
        let mut characters = line.chars();
        while let Some(c) = characters.next() {
            let last = words.len() - 1;
            match (quote, c) {
                (None, ' ' | '\t' | '\n') => {
                    if in_word {
                        words.push(String::new());
                    }
                    (in_word, kept) = (false, 0);
                    continue;
                }
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), c) if c == open => quote = None,
                (None | Some('"'), '\\') => words[last].extend(characters.next()),
                (None, '=' | ':') => {
                    words[last].push(c);
                    kept = words[last].len();
                }
                (_, c) => words[last].push(c),
            }
            in_word = true;
        }
        let current = words.pop().unwrap_or_default();
        Self { before: words.into_iter().skip(1).collect(), current, kept }
    }

    /// Takes words without quotes, the last of which is at the cursor.
    fn plain(words: &[String]) -> Self {
        let (current, before) = words.split_last().map_or((String::new(), &[][..]), |(last, all)| (last.clone(), all));
        Self { before: before.to_vec(), current, kept: 0 }
    }

    /// Takes words with their quotes, the last of which is at the cursor.
    fn quoted(words: &[String]) -> Self {
        let unquoted = |word: &String| Self::split(&format!("volfs {word}")).current;
        Self::plain(&words.iter().map(unquoted).collect::<Vec<_>>())
    }

    /// Returns the part of a candidate that bash puts into the line.
    fn after_break<'a>(&self, candidate: &'a str) -> &'a str {
        candidate.get(self.kept..).unwrap_or(candidate)
    }

    /// Returns what fits in place of the current word, by the definitions of the commands, and the text before it in the
    /// same word, such as `--layer=`.
    fn fitting(&self, cli: &Command) -> (String, Fitting) {
        let current = self.current.as_str();
        let words = |candidates| (String::new(), Fitting::words(candidates));
        let Some((name, rest)) = self.before.split_first() else {
            return words(if current.starts_with('-') { options(cli, current) } else { commands(cli, current) });
        };
        let Some(command) = cli.find_subcommand(name) else { return words(Vec::new()) };
        let (mut positional, mut given) = (Vec::new(), Vec::new());
        let mut pending: Option<&Arg> = None;
        let mut only_positional = false;
        for word in rest {
            if let Some(option) = pending.take() {
                given.push((option.get_id().as_str(), word.as_str()));
            } else if only_positional || !word.starts_with('-') || word == "-" {
                positional.push(word.as_str());
            } else if word == "--" {
                only_positional = true;
            } else if let Some((option, value)) = option_of(command, word) {
                match value {
                    Some(value) => given.push((option.get_id().as_str(), value)),
                    None => pending = Some(option).filter(|option| takes_next(option)),
                }
            }
        }
        let value = |prefix: String, typed: &str, arg: &Arg| {
            (prefix, values::fitting(arg, command.get_name(), typed, &positional, &given))
        };
        if let Some(option) = pending {
            return value(String::new(), current, option);
        }
        if current.starts_with('-') && !only_positional {
            return match (current.split_once('='), option_of(command, current)) {
                (Some((name, typed)), Some((option, _))) => value(format!("{name}="), typed, option),
                _ => words(options(command, current)),
            };
        }
        // the last one may be repeated
        let all: Vec<&Arg> = command.get_positionals().collect();
        let many = all.last().filter(|last| last.get_num_args().is_some_and(|n| n.max_values() > 1));
        match all.get(positional.len()).or(many) {
            Some(arg) => value(String::new(), current, arg),
            None => words(options(command, current)),
        }
    }
}

/// Finds the option that a word is, and its value if that is in the same word.
fn option_of<'a, 'w>(command: &'a Command, word: &'w str) -> Option<(&'a Arg, Option<&'w str>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        return command.get_opts().find(|option| option.get_long() == Some(name)).map(|option| (option, value));
    }
    // of several letters only the last one can have its value in the next word
    let last = word.chars().next_back()?;
    command.get_opts().find(|option| option.get_short() == Some(last)).map(|option| (option, None))
}

fn takes_next(option: &Arg) -> bool {
    !option.is_require_equals_set() && option.get_num_args().is_some_and(|n| n.takes_values())
}

fn commands(cli: &Command, typed: &str) -> Vec<Candidate> {
    let shown = cli.get_subcommands().filter(|command| !command.is_hide_set());
    let named = shown.flat_map(|command| {
        let names = command.get_name_and_visible_aliases().into_iter();
        names.map(move |name| Candidate::new(name, command.get_about()))
    });
    named.filter(|candidate| candidate.word.starts_with(typed)).collect()
}

fn options(command: &Command, typed: &str) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|option| !option.is_hide_set());
    let named = shown.filter_map(|option| Some(Candidate::new(format!("--{}", option.get_long()?), option.get_help())));
    named.filter(|candidate| candidate.word.starts_with(typed)).collect()
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

    #[test]
    fn lines_are_split_as_the_shell_does() {
        for (line, before, current, kept) in [
            ("volfs ", &[][..], "", 0),
            ("volfs ca", &[], "ca", 0),
            ("volfs cat ", &["cat"], "", 0),
            ("volfs cat  My\\ File --layer ", &["cat", "My File", "--layer"], "", 0),
            ("volfs cat 'My File' \"a\\\"b", &["cat", "My File"], "a\"b", 0),
            ("volfs cat 'My Fi", &["cat"], "My Fi", 0),
            ("volfs cat --layer=da", &["cat"], "--layer=da", 8),
            ("volfs cat a:b x", &["cat", "a:b"], "x", 0),
            ("volfs cat '' x", &["cat", ""], "x", 0),
        ] {
            let found = Line::split(line);
            assert_eq!(
                (&found.before[..], &*found.current, found.kept),
                (&before.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..], current, kept),
                "{line}"
            );
        }
        let fish = Line::quoted(&["cat".into(), "My\\ File".into(), "'x y".into()]);
        assert_eq!((fish.before, fish.current), (vec!["cat".to_owned(), "My File".into()], "x y".to_owned()));
    }
}
