//! The values that fit an argument: volumes, layers, levels, axes and mounts.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Arg;
use clap::builder::{PossibleValue, StyledStr};

use crate::catalog::Recogniser;
use crate::cli::source::{DatasetAt, mountpoint_of};
use crate::cli::text::choose;
use crate::format::{Layer, registry};
use crate::mount::read_mounts;
use crate::view::view_names;
use crate::volume::ArrayInfo;

/// A word that fits, and its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) word: String,
    pub(super) help: String,
}

impl Candidate {
    pub(super) fn new(word: impl Into<String>, help: Option<&StyledStr>) -> Self {
        Self { word: word.into(), help: help.map(ToString::to_string).unwrap_or_default() }
    }
}

/// The candidates, and their kind: `words` or `paths`; `files` or `folders` without candidates stand for any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fitting {
    pub(super) kind: &'static str,
    pub(super) candidates: Vec<Candidate>,
}

const FILES: Fitting = Fitting { kind: "files", candidates: Vec::new() };
const FOLDERS: Fitting = Fitting { kind: "folders", candidates: Vec::new() };

impl Fitting {
    pub(super) fn words(candidates: Vec<Candidate>) -> Self {
        Self { kind: "words", candidates }
    }

    /// Sorts paths; without any, others fit.
    fn paths(mut paths: Vec<String>, others: Self) -> Self {
        paths.sort_unstable();
        paths.dedup();
        let candidates: Vec<Candidate> = paths.into_iter().map(|path| Candidate::new(path, None)).collect();
        if candidates.is_empty() { others } else { Self { kind: "paths", candidates } }
    }
}

/// Returns what fits the argument `arg` of a command in place of `typed`. `options` are the names and values of the options
/// before the cursor.
pub(super) fn fitting(arg: &Arg, command: &str, typed: &str, positional: &[&str], options: &[(&str, &str)]) -> Fitting {
    let path = positional.first().map(|path| expanded(path));
    let of_path =
        |about: &dyn Fn(&Path) -> Vec<Candidate>| begins(path.as_deref().map(about).unwrap_or_default(), typed);
    let chosen = options.iter().find(|(name, _)| *name == "layer").map(|(_, value)| *value);
    match arg.get_id().as_str() {
        "path" | "paths" | "source" => paths_below(typed),
        "mountpoint" if command == "mount" => FOLDERS,
        "cache_folder" | "disk_cache" => FOLDERS,
        "mountpoint" => mounts(typed),
        "layer" => of_path(&layers),
        "lod" => of_path(&|path| about_layer(path, chosen, levels)),
        "at" => of_path(&|path| about_layer(path, chosen, axes)),
        "views" => Fitting::words(view_lists(typed)),
        "output" | "log_file" | "token_file" | "exec" => FILES,
        _ => {
            let word = |value: &PossibleValue| Candidate::new(value.get_name(), value.get_help());
            let possible = arg.get_possible_values();
            begins(possible.iter().filter(|value| !value.is_hide_set()).map(word).collect(), typed)
        }
    }
}

/// Returns the candidates that begin with what is typed, in any case.
fn begins(candidates: Vec<Candidate>, typed: &str) -> Fitting {
    let typed = typed.to_lowercase();
    let fits = |candidate: &Candidate| candidate.word.to_lowercase().starts_with(&typed);
    Fitting::words(candidates.into_iter().filter(fits).collect())
}

/// Returns the lists of views that are typed but for the last name, with each name that it may become.
fn view_lists(typed: &str) -> Vec<Candidate> {
    let (before, last) = typed.rfind([',', ':']).map_or(("", typed), |at| typed.split_at(at + 1));
    let is_new = |name: &str| before.split([',', ':']).all(|typed| typed != name);
    let names = view_names().iter().filter(|view| view.name.starts_with(last) && is_new(view.name));
    names.map(|view| Candidate { word: format!("{before}{}", view.name), help: view.about.to_owned() }).collect()
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
    Fitting::paths(found, FILES)
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
    Fitting::paths(found.collect(), FOLDERS)
}

/// Opens the volume and asks it.
fn ask<T>(path: &Path, about: impl FnOnce(&[Layer], Option<usize>) -> T) -> Option<T> {
    let found = DatasetAt::open(path, &[], None).ok()?;
    Some(about(found.open.dataset.layers(), found.layer))
}

fn layers(path: &Path) -> Vec<Candidate> {
    let described = |layer: &Layer| {
        let shape = |info: &ArrayInfo| format!("{} {}", sizes(info), info.dtype.name());
        let help = layer.levels.first().map(|level| shape(level.info())).unwrap_or_default();
        Candidate { word: layer.name.clone(), help }
    };
    ask(path, |layers, _| layers.iter().map(described).collect()).unwrap_or_default()
}

/// Returns something about the layer that is chosen: by its name, by the path, or the first.
fn about_layer(path: &Path, chosen: Option<&str>, about: fn(&Layer) -> Vec<Candidate>) -> Vec<Candidate> {
    let about = move |layers: &[Layer], by_path: Option<usize>| {
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
        let by_name = chosen.and_then(|name| choose("layer", &names, name).ok());
        layers.get(by_name.or(by_path).unwrap_or(0)).map(about).unwrap_or_default()
    };
    ask(path, about).unwrap_or_default()
}

fn levels(layer: &Layer) -> Vec<Candidate> {
    let levels = layer.levels.iter().enumerate();
    levels.map(|(lod, level)| Candidate { word: lod.to_string(), help: sizes(level.info()) }).collect()
}

fn axes(layer: &Layer) -> Vec<Candidate> {
    let axes = layer.levels.first().into_iter().flat_map(|level| &level.info().axes);
    axes.filter(|axis| !axis.name.is_empty()).map(|axis| Candidate::new(format!("{}=", axis.name), None)).collect()
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

    fn arg(id: &'static str) -> Arg {
        Arg::new(id)
    }

    #[test]
    fn volumes_and_their_layers_are_found() {
        let data = format!("{}/tests/data/demo/", env!("CARGO_MANIFEST_DIR"));
        let found = fitting(&arg("path"), "cat", &data, &[], &[]);
        let names: Vec<&str> = found.candidates.iter().filter_map(|path| path.word.strip_prefix(&data)).collect();
        assert_eq!((found.kind, names), ("paths", vec!["cells/", "cloud-survey/", "north.zgy", "south.vds"]));
        let words = |id, typed: &str, path: &str, options: &[(&str, &str)]| {
            words_of(fitting(&arg(id), "cat", typed, &[&(data.clone() + path)], options))
        };
        assert_eq!(words("layer", "", "south.vds", &[]), ["Amplitude", "Trace", "SEGYTraceHeader"]);
        assert_eq!(words("layer", "tr", "south.vds", &[]), ["Trace"]);
        assert_eq!(words("lod", "", "north.zgy", &[]), ["0", "1", "2"]);
        assert_eq!(words("at", "in", "north.zgy", &[]), ["inline="]);
        assert_eq!(words("lod", "", "cloud-survey", &[("layer", "SEGY")]), ["0"]);
        assert_eq!(words("layer", "", "none", &[]), [""; 0]);
    }

    fn words_of(fitting: Fitting) -> Vec<String> {
        assert_eq!(fitting.kind, "words");
        fitting.candidates.into_iter().map(|candidate| candidate.word).collect()
    }

    #[test]
    fn lists_of_views_go_on_with_names_that_are_not_in_them() {
        let words = |typed: &str| words_of(fitting(&arg("views"), "mount", typed, &[], &[]));
        assert_eq!(words("n"), ["npy", "nrrd"]);
        assert_eq!(words("npy,n"), ["npy,nrrd"]);
        assert_eq!(words("tiff:raw"), ["tiff:raw"]);
        assert_eq!(words("x"), [""; 0]);
        assert_eq!(words("").len(), view_names().len());
    }

    #[test]
    fn the_shell_finds_what_volfs_does_not_know() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("notes.txt"), "x").unwrap();
        let typed = format!("{}/", folder.path().display());
        assert_eq!(fitting(&arg("path"), "info", &typed, &[], &[]), FILES);
        assert_eq!(fitting(&arg("mountpoint"), "umount", &typed, &[], &[]), FOLDERS);
        assert_eq!(fitting(&arg("log_file"), "mount", "", &[], &[]), FILES);
    }
}
