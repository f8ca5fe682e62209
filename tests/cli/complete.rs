//! Completion: what the scripts of the shells offer.

use std::process::{Command, Stdio};

use super::demo;
use crate::support::{Mount, program, skip, test_data, text, volfs};

/// Runs a shell with the script of that shell loaded; `None` if the shell is not there.
fn shell(name: &str, arguments: &[&str], commands: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, volfs().args(["complete", name]).output().unwrap().stdout).unwrap();
    // the function by which a script registers with zsh, which has it only at a prompt
    let compdef = if name == "zsh" { "compdef() { :; }\n" } else { "" };
    let commands = format!("{compdef}source {}\n{commands}", script.display());
    let mut command = Command::new(name);
    command.args(arguments).arg("-c").arg(commands).env("VOLFS", program()).stdin(Stdio::null());
    let Ok(output) = command.output() else {
        skip(&format!("there is no {name}"));
        return None;
    };
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    Some(text(&output.stdout))
}

/// Returns what bash would insert, and the options that its script sets.
fn bash(line: &str) -> Option<String> {
    let commands = format!(
        "compopt() {{ echo \"$@\"; }}\nCOMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}\n_volfs \"$VOLFS\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    shell("bash", &["--norc"], &commands)
}

#[test]
fn bash_completes_volumes_layers_levels_and_axes() {
    let (folder, vds) = (test_data("demo"), test_data("demo/south.vds"));
    for (line, wanted) in [
        ("volfs inf".to_owned(), "info\n"),
        ("volfs cat x --la".into(), "--layer\n"),
        (format!("volfs cat {} --layer ", vds.display()), "Amplitude\nTrace\nSEGYTraceHeader\n"),
        (format!("volfs cat {} --layer=tr", vds.display()), "Trace\n"),
        (format!("volfs cat {} --lod ", demo().display()), "0\n1\n2\n"),
        (format!("volfs cat {} --at cr", demo().display()), "-o nospace\ncrossline=\n"),
        (format!("volfs info {}/so", folder.display()), &format!("-o filenames\n{}\n", vds.display())),
        ("volfs cat x -o ".into(), "-o default\n\n"),
    ] {
        let Some(found) = bash(&line) else { return };
        assert_eq!(found, wanted, "{line}");
    }
}

#[test]
fn mounts_are_completed_where_one_is_wanted() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let point = mount.point().display().to_string();
    for command in ["umount", "unmount", "stats --json"] {
        let Some(found) = bash(&format!("volfs {command} {}", &point[..point.len() - 2])) else { return };
        assert_eq!(found, format!("-o filenames\n{point}\n"), "{command}");
    }
    let Some(found) = bash(&format!("volfs cat {point}/north.zgy/data --lod ")) else { return };
    assert_eq!(found, "0\n1\n2\n");
}

#[test]
fn fish_and_zsh_take_their_scripts() {
    let line = format!("volfs cat {} --layer t", test_data("demo/south.vds").display());
    let path = "set -x PATH (path dirname $VOLFS) $PATH; ";
    if let Some(found) = shell("fish", &["--no-config"], &format!("{path} complete -C '{line}'")) {
        assert_eq!(found, "Trace\t64x80x1 uint8\n");
    }
    let found = shell("zsh", &["-f"], "whence -w _volfs");
    assert!(found.is_none_or(|found| found == "_volfs: function\n"));
}
