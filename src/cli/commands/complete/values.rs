//! The values that fit an argument: volumes, layers, levels, axes and mounts.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Arg;

use super::fitting::{Candidate, Fitting};
use crate::catalog::Recogniser;
use crate::cli::dataset_at::DatasetAt;
use crate::cli::mounts::source_behind::mountpoint_of;
use crate::cli::text::choice::choose;
use crate::codec::zfp::Decoder;
use crate::format::{Layer, registry};
use crate::mount::mountinfo;
use crate::view::view_names;

/// Returns what fits the argument `of` of a command, of which `typed` is typed.
pub(crate) fn fitting(
    of: &Arg,
    command: &str,
    typed: &str,
    positional: &[String],
    options: &[(String, String)],
) -> Fitting {
    let path = positional.first().map(|path| expanded(path));
    let chosen = options.iter().find(|(name, _)| name == "layer").map(|(_, value)| value.clone());
    match of.get_id().as_str() {
        "path" | "paths" | "source" => paths_below(typed),
        "mountpoint" if command == "mount" => Fitting::Folders,
        "cache_folder" | "disk_cache" => Fitting::Folders,
        "mountpoint" => mounts(typed),
        "layer" => Fitting::Words(begins(path.map_or_else(Vec::new, layers), typed)),
        "lod" => Fitting::Words(begins(path.map_or_else(Vec::new, |path| levels(path, chosen)), typed)),
        "at" => Fitting::Words(begins(path.map_or_else(Vec::new, |path| axes(path, chosen)), typed)),
        "views" => Fitting::Words(view_lists(typed)),
        "output" | "log_file" | "token_file" | "exec" => Fitting::Files,
        _ => {
            let possible = of.get_possible_values();
            let word = |value: &clap::builder::PossibleValue| Candidate {
                word: value.get_name().to_owned(),
                help: value.get_help().map(ToString::to_string).unwrap_or_default(),
            };
            Fitting::Words(begins(possible.iter().filter(|value| !value.is_hide_set()).map(word).collect(), typed))
        }
    }
}

/// Returns the candidates that begin with what is typed, in any case.
fn begins(candidates: Vec<Candidate>, typed: &str) -> Vec<Candidate> {
    let typed = typed.to_lowercase();
    candidates.into_iter().filter(|candidate| candidate.word.to_lowercase().starts_with(&typed)).collect()
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
    found.sort_unstable();
    if found.is_empty() { Fitting::Files } else { Fitting::Paths(found) }
}

/// Returns the mount points that begin with what is typed.
fn mounts(typed: &str) -> Fitting {
    let all = mountinfo::read().unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    let home = std::env::home_dir().unwrap_or_default();
    let shown = |mountpoint: &Path| match typed {
        _ if typed.starts_with("~/") => Some(format!("~/{}", mountpoint.strip_prefix(&home).ok()?.to_str()?)),
        _ if typed.starts_with('/') || typed.is_empty() => Some(mountpoint.to_str()?.to_owned()),
        _ => Some(mountpoint.strip_prefix(&here).ok()?.to_str()?.to_owned()),
    };
    let ours = all.iter().filter(|mount| mount.is_volfs());
    let mut found: Vec<String> =
        ours.filter_map(|mount| shown(&mount.mountpoint)).filter(|m| m.starts_with(typed)).collect();
    found.sort_unstable();
    found.dedup();
    if found.is_empty() { Fitting::Folders } else { Fitting::Paths(found) }
}

/// Opens the volume and asks it.
fn ask<T>(path: &Path, about: impl FnOnce(&[Layer], Option<usize>) -> T) -> Option<T> {
    let found = DatasetAt::open(path, &[], None, Decoder::default()).ok()?;
    Some(about(found.open.dataset.layers(), found.layer))
}

fn layers(path: PathBuf) -> Vec<Candidate> {
    let described = |layer: &Layer| {
        let info = layer.levels.first().map(|level| level.info());
        let shape = |info: &crate::volume::ArrayInfo| {
            let sizes: Vec<String> = info.shape().iter().map(ToString::to_string).collect();
            format!("{} {}", sizes.join("x"), info.dtype.name())
        };
        Candidate { word: layer.name.clone(), help: info.map(shape).unwrap_or_default() }
    };
    ask(&path, |layers, _| layers.iter().map(described).collect()).unwrap_or_default()
}

/// Returns something about the layer that is chosen: by its name, by the path, or the first.
fn about_layer(path: PathBuf, chosen: Option<String>, about: impl FnOnce(&Layer) -> Vec<Candidate>) -> Vec<Candidate> {
    let about = move |layers: &[Layer], by_path: Option<usize>| {
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
        let by_name = chosen.and_then(|name| choose("layer", &names, &name).ok());
        layers.get(by_name.or(by_path).unwrap_or(0)).map(about).unwrap_or_default()
    };
    ask(&path, about).unwrap_or_default()
}

fn levels(path: PathBuf, chosen: Option<String>) -> Vec<Candidate> {
    about_layer(path, chosen, |layer| {
        let shape = |lod: usize| layer.levels.get(lod).map(|level| level.info().shape());
        let sizes = |lod| shape(lod).map(|shape| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x"));
        let level = |lod: usize| Candidate { word: lod.to_string(), help: sizes(lod).unwrap_or_default() };
        (0..layer.levels.len()).map(level).collect()
    })
}

fn axes(path: PathBuf, chosen: Option<String>) -> Vec<Candidate> {
    about_layer(path, chosen, |layer| {
        let axes = layer.levels.first().map(|level| level.info().axes.clone()).unwrap_or_default();
        let named = axes.into_iter().filter(|axis| !axis.name.is_empty());
        named.map(|axis| Candidate { word: format!("{}=", axis.name), help: String::new() }).collect()
    })
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
        let Fitting::Paths(found) = fitting(&arg("path"), "cat", &data, &[], &[]) else { panic!("no paths") };
        let names: Vec<&str> = found.iter().filter_map(|path| path.strip_prefix(&data)).collect();
        assert_eq!(names, ["cells/", "cloud-survey/", "north.zgy", "south.vds"]);
        let words = |id, typed: &str, path: &str, options: &[(String, String)]| match fitting(
            &arg(id),
            "cat",
            typed,
            &[data.clone() + path],
            options,
        ) {
            Fitting::Words(words) => words.into_iter().map(|c| c.word).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(words("layer", "", "south.vds", &[]), ["Amplitude", "Trace", "SEGYTraceHeader"]);
        assert_eq!(words("layer", "tr", "south.vds", &[]), ["Trace"]);
        assert_eq!(words("lod", "", "north.zgy", &[]), ["0", "1", "2"]);
        assert_eq!(words("at", "in", "north.zgy", &[]), ["inline="]);
        let chosen = [("layer".to_owned(), "SEGY".to_owned())];
        assert_eq!(words("lod", "", "cloud-survey", &chosen), ["0"]);
        assert_eq!(words("layer", "", "none", &[]), [""; 0]);
    }

    #[test]
    fn lists_of_views_go_on_with_names_that_are_not_in_them() {
        let words = |typed: &str| match fitting(&arg("views"), "mount", typed, &[], &[]) {
            Fitting::Words(words) => words.into_iter().map(|candidate| candidate.word).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
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
        assert_eq!(fitting(&arg("path"), "info", &typed, &[], &[]), Fitting::Files);
        assert_eq!(fitting(&arg("mountpoint"), "umount", &typed, &[], &[]), Fitting::Folders);
        assert_eq!(fitting(&arg("log_file"), "mount", "", &[], &[]), Fitting::Files);
    }
}
