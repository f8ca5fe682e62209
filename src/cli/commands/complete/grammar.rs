//! What may stand at the cursor, by the definitions of the commands.

use clap::{Arg, Command};

use super::fitting::Candidate;

/// What may stand at the cursor.
pub(crate) enum Wanted {
    /// One of these words.
    Words(Vec<Candidate>),
    /// A value of an argument.
    Value {
        /// What stands before the value in the same word, such as `--layer=`.
        prefix: String,
        /// The value as far as it is typed.
        typed: String,
        /// The argument.
        of: Box<Arg>,
        /// The name of the command.
        command: String,
        /// The positional arguments before the cursor.
        positional: Vec<String>,
        /// The options before the cursor that have a value: their names and values.
        options: Vec<(String, String)>,
    },
}

/// Returns what may stand in place of `current` behind the words `before`.
pub(crate) fn wanted(cli: &Command, before: &[String], current: &str) -> Wanted {
    let Some((name, rest)) = before.split_first() else {
        return Wanted::Words(if current.starts_with('-') { options(cli, current) } else { commands(cli, current) });
    };
    let Some(command) = cli.find_subcommand(name) else { return Wanted::Words(Vec::new()) };
    let (mut positional, mut given) = (Vec::new(), Vec::new());
    let mut pending: Option<&Arg> = None;
    let mut only_positional = false;
    for word in rest {
        if let Some(option) = pending.take() {
            given.push((option.get_id().to_string(), word.clone()));
        } else if only_positional || !word.starts_with('-') || word == "-" {
            positional.push(word.clone());
        } else if word == "--" {
            only_positional = true;
        } else if let Some((option, value)) = option_of(command, word) {
            match value {
                Some(value) => given.push((option.get_id().to_string(), value)),
                None => pending = Some(option).filter(|option| takes_next(option)),
            }
        }
    }
    let value = |prefix: &str, typed: &str, of: &Arg| Wanted::Value {
        prefix: prefix.to_owned(),
        typed: typed.to_owned(),
        of: Box::new(of.clone()),
        command: command.get_name().to_owned(),
        positional: positional.clone(),
        options: given.clone(),
    };
    if let Some(option) = pending {
        return value("", current, option);
    }
    if current.starts_with('-') && !only_positional {
        return match (current.split_once('='), option_of(command, current)) {
            (Some((name, typed)), Some((option, _))) => value(&format!("{name}="), typed, option),
            _ => Wanted::Words(options(command, current)),
        };
    }
    // the last one may be repeated
    let all: Vec<&Arg> = command.get_positionals().collect();
    let many = all.last().filter(|last| last.get_num_args().is_some_and(|n| n.max_values() > 1));
    match all.get(positional.len()).or(many) {
        Some(of) => value("", current, of),
        None => Wanted::Words(options(command, current)),
    }
}

/// Finds the option that a word is, and its value if that is in the same word.
fn option_of<'a>(command: &'a Command, word: &str) -> Option<(&'a Arg, Option<String>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
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
        let help = command.get_about().map(ToString::to_string).unwrap_or_default();
        command.get_name_and_visible_aliases().into_iter().map(move |name| (name.to_owned(), help.clone()))
    });
    named.filter(|(name, _)| name.starts_with(typed)).map(|(word, help)| Candidate { word, help }).collect()
}

fn options(command: &Command, typed: &str) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|option| !option.is_hide_set());
    let named = shown.filter_map(|option| {
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        Some(Candidate { word: format!("--{}", option.get_long()?), help })
    });
    named.filter(|candidate| candidate.word.starts_with(typed)).collect()
}
