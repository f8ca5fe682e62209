//! The value of `--views`.

use std::fmt;

use crate::cli::text::choice::similar;
use crate::view::{view_names, with_needed};

/// The names of views, with those of the views that they need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Views(pub Vec<&'static str>);

impl fmt::Display for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Reads names with commas or colons between: an option of `-o` can only have colons.
pub(crate) fn views(text: &str) -> Result<Views, String> {
    let known: Vec<&str> = view_names().iter().map(|view| view.name).collect();
    let mut names = Vec::new();
    for name in text.split([',', ':']).map(str::trim).filter(|name| !name.is_empty()) {
        match known.iter().find(|known| **known == name) {
            Some(name) => names.push(*name),
            None => {
                let meant = similar(&known, name).map(|name| format!("did you mean {name}? ")).unwrap_or_default();
                return Err(format!("there is no view {name}; {meant}there are {}", known.join(", ")));
            }
        }
    }
    if names.is_empty() {
        return Err(format!("it needs at least one of {}", known.join(", ")));
    }
    Ok(Views(with_needed(&names)))
}

/// Returns the long help of `--views`.
pub(crate) fn help() -> String {
    let width = view_names().iter().map(|view| view.name.len()).max().unwrap_or(0);
    let lines: Vec<String> =
        view_names().iter().map(|view| format!("  {:width$}  {}", view.name, view.about)).collect();
    format!(
        "Show these views only: their names with commas between (in -o with colons)\n\n{}\n\n\
        The headers of lodN.raw bring it along. dataset.json and lodN.json are always shown. [default: all that fit \
        the dataset]",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_commas_or_colons() {
        assert_eq!(views("npy,raw").map(|views| views.to_string()), Ok("raw,npy".to_owned()));
        assert_eq!(views("npy: tiff:").map(|views| views.to_string()), Ok("npy,tiff".to_owned()));
        assert_eq!(views("nrrd").map(|views| views.to_string()), Ok("raw,nrrd".to_owned()));
    }

    #[test]
    fn other_names_are_refused_with_the_nearest() {
        let error = views("raw,tif").unwrap_err();
        assert!(error.starts_with("there is no view tif; did you mean tiff? there are raw, npy, "), "{error}");
        let error = views("zzz").unwrap_err();
        assert!(error.starts_with("there is no view zzz; there are raw, npy, "), "{error}");
        for empty in ["", ",", " : "] {
            assert!(views(empty).unwrap_err().starts_with("it needs at least one of raw, "), "{empty}");
        }
    }

    #[test]
    fn the_help_explains_each() {
        let help = help();
        assert!(help.contains("\n  raw      lodN.raw: ") && help.contains("\n  by-axis  lodN.by-AXIS.npy: "), "{help}");
        assert!(!help.contains('\n') || help.lines().all(|line| line.len() < 200));
    }
}
