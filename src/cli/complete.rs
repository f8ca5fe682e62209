//! `volfs complete`: what a shell offers for the word at the cursor (commands, options, volumes, layers, levels, axes and
//! mounts), and the scripts that ask.
//!
//! The answer is a line with the kind, and a line for each candidate with its description behind a tab. The kinds are
//! `words`, `paths` (of which the candidates that end in a slash are folders), and `files` and `folders`, which the
//! shell finds by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, Args, Command, CommandFactory, ValueEnum};

use super::deadline;
use super::error::{Cause, CliError};
use super::source::{DatasetAt, mountpoint_of};
use super::text::{choose, escaped};
use super::{Cli, output};
use crate::catalog::Recogniser;
use crate::format::{Layer, registry};
use crate::mount::read_mounts;
use crate::view::VIEW_NAMES;
use crate::volume::ArrayInfo;

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

pub(super) fn run(args: &CompleteArgs) -> Result<(), CliError> {
    if args.typed.is_empty() {
        return output::print(script(args.shell));
    }
    let line = match args.shell {
        Shell::Bash => Line::split(args.typed.first().map_or("", String::as_str)),
        Shell::Fish => Line::quoted(&args.typed),
        Shell::Zsh => Line::plain(&args.typed),
    };
    match deadline::run(TIMEOUT, Path::new("."), || output::print(&answer(args.shell, &line))) {
        // the shell would hang as well
        Err(error) if matches!(error.cause, Cause::Timeout) => output::print("words\n"),
        offered => offered,
    }
}

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
    let (prefix, (kind, candidates)) = line.fitting(&cli);
    let mut text = format!("{kind}\n");
    for (word, help) in candidates {
        let mut word = format!("{prefix}{word}");
        // a name with such characters cannot be typed
        if word.contains(char::is_control) {
            continue;
        }
        if shell == Shell::Bash {
            // it replaces only what follows `=` or `:`
            word = word.get(line.kept..).unwrap_or(&word).to_owned();
            // bash adds the slash by itself
            word.truncate(word.trim_end_matches('/').len().max(1));
        }
        text.push_str(&format!("{word}\t{}\n", escaped(&help)));
    }
    text
}

/// The words before the cursor, without their quotes; the name of the program is left out.
struct Line {
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

    /// Returns what fits in place of the current word, by the definitions of the commands, and the text before it in the
    /// same word, such as `--layer=`.
    fn fitting(&self, cli: &Command) -> (String, Fitting) {
        let current = self.current.as_str();
        let words = |candidates| (String::new(), ("words", candidates));
        let Some((name, rest)) = self.before.split_first() else {
            return words(if current.starts_with('-') { options(cli, current) } else { commands(cli, current) });
        };
        let Some(command) = cli.find_subcommand(name) else { return words(Vec::new()) };
        let Words { positional, given, pending, only_positional } =
            Words::new(command, rest.iter().map(String::as_str));
        let value = |prefix: String, typed: &str, arg: &Arg| {
            (prefix, value_of(arg, command.get_name(), typed, &positional, &given))
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

/// The words after a command, told apart by its definition.
pub(super) struct Words<'a> {
    pub(super) positional: Vec<&'a str>,
    /// The names of options that have a value, and it.
    given: Vec<(&'a str, &'a str)>,
    pending: Option<&'a Arg>,
    /// Whether there was a `--`.
    only_positional: bool,
}

impl<'a> Words<'a> {
    pub(super) fn new(command: &'a Command, words: impl Iterator<Item = &'a str>) -> Self {
        let mut told = Self { positional: Vec::new(), given: Vec::new(), pending: None, only_positional: false };
        for word in words {
            if let Some(option) = told.pending.take() {
                told.given.push((option.get_id().as_str(), word));
            } else if told.only_positional || !word.starts_with('-') || word == "-" {
                told.positional.push(word);
            } else if word == "--" {
                told.only_positional = true;
            } else if let Some((option, value)) = option_of(command, word) {
                match value {
                    Some(value) => told.given.push((option.get_id().as_str(), value)),
                    None => told.pending = Some(option).filter(|option| !option.is_require_equals_set()),
                }
            }
        }
        told
    }
}

/// Finds the option that a word is, and its value if that is in the same word.
fn option_of<'a, 'w>(command: &'a Command, word: &'w str) -> Option<(&'a Arg, Option<&'w str>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        return command.get_opts().find(|option| option.get_long() == Some(name)).map(|option| (option, value));
    }
    // `-o` and `-fo` take the next word; `-oro` contains its value
    let is_last = |letter| word.find(letter) == Some(word.len() - 1);
    command.get_opts().find(|option| option.get_short().is_some_and(is_last)).map(|option| (option, None))
}

fn commands(cli: &Command, typed: &str) -> Vec<Candidate> {
    let shown = cli.get_subcommands().filter(|command| !command.is_hide_set());
    let named = shown.flat_map(|command| {
        let names = command.get_name_and_visible_aliases().into_iter();
        names.map(move |name| candidate(name, command.get_about()))
    });
    named.filter(|(word, _)| word.starts_with(typed)).collect()
}

fn options(command: &Command, typed: &str) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|option| !option.is_hide_set());
    let named = shown.filter_map(|option| Some(candidate(format!("--{}", option.get_long()?), option.get_help())));
    named.filter(|(word, _)| word.starts_with(typed)).collect()
}

/// A word that fits, and its meaning.
type Candidate = (String, String);

fn candidate(word: impl Into<String>, help: Option<&StyledStr>) -> Candidate {
    (word.into(), help.map(ToString::to_string).unwrap_or_default())
}

/// The candidates, and their kind: `words` or `paths`; `files` or `folders`, any of which fits, have no candidates.
type Fitting = (&'static str, Vec<Candidate>);

const FILES: Fitting = ("files", Vec::new());
const FOLDERS: Fitting = ("folders", Vec::new());

/// Sorts paths; without any, others fit.
fn sorted(mut paths: Vec<String>, others: Fitting) -> Fitting {
    paths.sort_unstable();
    paths.dedup();
    let candidates: Vec<Candidate> = paths.into_iter().map(|path| candidate(path, None)).collect();
    if candidates.is_empty() { others } else { ("paths", candidates) }
}

/// Returns what fits the argument `arg` of a command in place of `typed`. `options` are the names and values of the options
/// before the cursor.
fn value_of(arg: &Arg, command: &str, typed: &str, positional: &[&str], options: &[(&str, &str)]) -> Fitting {
    let of_dataset = |kind: &str| {
        let found = positional.first().and_then(|path| DatasetAt::open(&expanded(path), &[], None).ok());
        let chosen = options.iter().find(|(name, _)| *name == "layer").map(|(_, value)| *value);
        begins(found.map(|found| inside(&found, kind, chosen)).unwrap_or_default(), typed)
    };
    match arg.get_id().as_str() {
        "mountpoint" if command != "mount" => mounts(typed),
        "mountpoint" | "cache_folder" | "disk_cache" => FOLDERS,
        kind @ ("layer" | "lod" | "at") => of_dataset(kind),
        "views" => ("words", view_lists(typed)),
        "path" | "paths" | "source" => paths_below(typed),
        "output" | "log_file" | "token_file" | "exec" => FILES,
        _ => {
            let word = |value: &PossibleValue| candidate(value.get_name(), value.get_help());
            let possible = arg.get_possible_values();
            begins(possible.iter().filter(|value| !value.is_hide_set()).map(word).collect(), typed)
        }
    }
}

/// Returns the candidates that begin with what is typed, in any case.
fn begins(candidates: Vec<Candidate>, typed: &str) -> Fitting {
    let typed = typed.to_lowercase();
    let fits = |(word, _): &Candidate| word.to_lowercase().starts_with(&typed);
    ("words", candidates.into_iter().filter(fits).collect())
}

/// Returns the lists of views that are typed but for the last name, with each name that it may become.
fn view_lists(typed: &str) -> Vec<Candidate> {
    let (before, last) = typed.rfind([',', ':']).map_or(("", typed), |at| typed.split_at(at + 1));
    let is_new = |name: &str| before.split([',', ':']).all(|typed| typed != name);
    let names = VIEW_NAMES.iter().filter(|(name, _)| name.starts_with(last) && is_new(name));
    names.map(|(name, about)| (format!("{before}{name}"), (*about).to_owned())).collect()
}

/// Returns the folders and volumes that begin with what is typed, inside a mount all files.
fn paths_below(typed: &str) -> Fitting {
    let (folder, begin) =
        typed.rsplit_once('/').map_or(("", typed), |(folder, begin)| (&typed[..=folder.len()], begin));
    let place = if folder.is_empty() { PathBuf::from(".") } else { expanded(folder) };
    let in_mount = mountpoint_of(&place).is_ok_and(|mount| mount.is_some());
    let recogniser = Recogniser::new(registry());
    let mut found = Vec::new();
    for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(begin)) else { continue };
        if name.starts_with('.') && begin.is_empty() {
            continue;
        }
        let Ok(kind) = entry.file_type() else { continue };
        let is_folder = kind.is_dir() || (kind.is_symlink() && fs::metadata(entry.path()).is_ok_and(|m| m.is_dir()));
        if is_folder {
            found.push(format!("{folder}{name}/"));
        } else if in_mount || matches!(recogniser.format_of(&entry.path()), Ok(Some(_))) {
            found.push(format!("{folder}{name}"));
        }
    }
    sorted(found, FILES)
}

/// Returns the mount points that begin with what is typed.
fn mounts(typed: &str) -> Fitting {
    let all = read_mounts().unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    let home = std::env::home_dir().unwrap_or_default();
    let shown = |mountpoint: &Path| match typed {
        _ if typed.starts_with("~/") => Some(format!("~/{}", mountpoint.strip_prefix(&home).ok()?.to_str()?)),
        _ if typed.starts_with('/') || typed.is_empty() => Some(mountpoint.to_str()?.to_owned()),
        _ => Some(mountpoint.strip_prefix(&here).ok()?.to_str()?.to_owned()),
    };
    let ours = all.iter().filter(|mount| mount.is_volfs());
    let found = ours.filter_map(|mount| shown(&mount.mountpoint)).filter(|place| place.starts_with(typed));
    sorted(found.collect(), FOLDERS)
}

/// Returns the layers of a dataset, or the levels (`lod`) or axes (`at`) of a layer: the chosen one, that of the path, or
/// the first.
fn inside(found: &DatasetAt, kind: &str, chosen: Option<&str>) -> Vec<Candidate> {
    let layers = found.open.dataset.layers();
    if kind == "layer" {
        let described = |layer: &Layer| {
            let about =
                layer.levels.first().map(|level| format!("{} {}", sizes(level.info()), level.info().dtype.name()));
            (layer.name.clone(), about.unwrap_or_default())
        };
        return layers.iter().map(described).collect();
    }
    let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
    let by_name = chosen.and_then(|name| choose("layer", &names, name).ok());
    let Some(layer) = layers.get(by_name.or(found.layer).unwrap_or(0)) else { return Vec::new() };
    if kind == "lod" {
        let levels = layer.levels.iter().enumerate();
        return levels.map(|(lod, level)| (lod.to_string(), sizes(level.info()))).collect();
    }
    let axes = layer.levels.first().into_iter().flat_map(|level| &level.info().axes);
    axes.filter(|axis| !axis.name.is_empty()).map(|axis| candidate(format!("{}=", axis.name), None)).collect()
}

/// Formats the shape of an array: `64x80x1`.
fn sizes(info: &ArrayInfo) -> String {
    info.shape().iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

/// Returns a path with the home folder in place of `~`.
fn expanded(path: &str) -> PathBuf {
    let home = || std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    match path.strip_prefix("~/").zip(home()) {
        Some((below, home)) => home.join(below),
        None => PathBuf::from(path),
    }
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
    fn each_path_is_offered_once_in_order() {
        // two mounts at one place
        let paths = |words: &[&str]| sorted(words.iter().map(|word| (*word).to_owned()).collect(), FOLDERS);
        assert_eq!(paths(&["b", "a", "b"]), ("paths", vec![candidate("a", None), candidate("b", None)]));
        assert_eq!(paths(&[]), FOLDERS);
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

    fn arg(id: &'static str) -> Arg {
        Arg::new(id)
    }

    #[test]
    fn volumes_and_their_layers_are_found() {
        let data = format!("{}/tests/data/demo/", env!("CARGO_MANIFEST_DIR"));
        let found = value_of(&arg("path"), "cat", &data, &[], &[]);
        let names: Vec<&str> = found.1.iter().filter_map(|(path, _)| path.strip_prefix(&data)).collect();
        assert_eq!((found.0, names), ("paths", vec!["cells/", "cloud-survey/", "north.zgy", "south.vds"]));
        let words = |id, typed: &str, path: &str, options: &[(&str, &str)]| {
            words_of(value_of(&arg(id), "cat", typed, &[&(data.clone() + path)], options))
        };
        assert_eq!(words("layer", "", "south.vds", &[]), ["Amplitude", "Trace", "SEGYTraceHeader"]);
        assert_eq!(words("layer", "tr", "south.vds", &[]), ["Trace"]);
        assert_eq!(words("lod", "", "north.zgy", &[]), ["0", "1", "2"]);
        assert_eq!(words("at", "in", "north.zgy", &[]), ["inline="]);
        assert_eq!(words("lod", "", "cloud-survey", &[("layer", "SEGY")]), ["0"]);
        assert_eq!(words("layer", "", "none", &[]), [""; 0]);
    }

    fn words_of((kind, candidates): Fitting) -> Vec<String> {
        assert_eq!(kind, "words");
        candidates.into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn lists_of_views_go_on_with_names_that_are_not_in_them() {
        let words = |typed: &str| words_of(value_of(&arg("views"), "mount", typed, &[], &[]));
        assert_eq!(words("n"), ["npy", "nrrd", "netcdf"]);
        assert_eq!(words("npy,n"), ["npy,nrrd", "npy,netcdf"]);
        assert_eq!(words("tiff:raw"), ["tiff:raw"]);
        assert_eq!(words("x"), [""; 0]);
        assert_eq!(words("").len(), VIEW_NAMES.len());
    }

    #[test]
    fn the_shell_finds_what_volfs_does_not_know() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("notes.txt"), "x").unwrap();
        let typed = format!("{}/", folder.path().display());
        assert_eq!(value_of(&arg("path"), "info", &typed, &[], &[]), FILES);
        assert_eq!(value_of(&arg("mountpoint"), "umount", &typed, &[], &[]), FOLDERS);
        assert_eq!(value_of(&arg("log_file"), "mount", "", &[], &[]), FILES);
    }
}
