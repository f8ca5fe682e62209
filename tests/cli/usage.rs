//! Arguments: usage, help, completion, and what each unit of systemd says.

use std::fs;
use std::process::{Command, Stdio};

use super::demo;
use crate::support::{Mount, program, skip, test_data, text, volfs};

#[test]
fn every_help_ends_with_a_narrow_example() {
    for command in ["ls", "cache", "cat", "stats", "doctor", "info", "mount", "umount", "verify"] {
        let output = volfs().args([command, "--help"]).output().unwrap();
        let help = text(&output.stdout);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
        let example = help.split("Example:\n").nth(1).unwrap_or_else(|| panic!("no example in {help}"));
        assert!(example.contains(&format!("volfs {command}")), "{help}");
        assert!(example.lines().all(|line| line.len() <= 80), "too wide: {example}");
    }
}

#[test]
fn wrong_usage_is_status_2() {
    for line in [
        "mount",
        "mount --unheard-of a b",
        "mount a b c",
        "mount --cache-size many a b",
        "info",
        "ls",
        "cache",
        "cat",
        "umount",
        "verify",
        "doctor x",
        "",
    ] {
        let output = volfs().args(line.split_whitespace()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{line}");
    }
}

#[test]
fn commands_have_their_other_names_and_misspelt_ones_are_told() {
    let demo = test_data("demo");
    let list = |command: &str| text(&volfs().arg(command).arg(&demo).output().unwrap().stdout);
    assert!(!list("ls").is_empty() && list("list") == list("ls"));
    let unmount = volfs().args(["unmount", "/proc"]).output().unwrap();
    assert!(text(&unmount.stderr).contains("/proc is a mount of proc, not of volfs"), "{}", text(&unmount.stderr));
    for (arguments, tip) in [
        (&["umuont", "/mnt"][..], "'umount'"),
        (&["moutn", "source", "point"], "'mount'"),
        (&["mout", "source", "point", "-o", "ro"], "'mount'"),
        (&["verfy", "a", "b"], "'verify'"),
        (&["cat", "--regoin", "0", "x"], "'--region'"),
        (&["frobnicate", "a", "b"], "unrecognized subcommand 'frobnicate'"),
    ] {
        let output = volfs().args(arguments).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(tip) && !stderr.contains("cannot find the source"), "{arguments:?}: {stderr}");
    }
}

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

#[test]
fn systemd_accepts_every_unit() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skip("there is no systemd-analyze");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no"]).current_dir(folder.path());
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/systemd")).unwrap() {
        let path = entry.unwrap().path();
        let (name, unit) = (path.file_name().unwrap(), fs::read_to_string(&path).unwrap());
        // it looks whether there is the program
        fs::write(folder.path().join(name), unit.replace("/usr/bin/volfs", program().to_str().unwrap())).unwrap();
        command.arg(folder.path().join(name));
    }
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    // of units of the machine it may have something to say
    let about_ours: Vec<&str> =
        said.lines().filter(|line| line.contains("volfs") || line.contains("mnt-surveys")).collect();
    assert!(about_ours.is_empty(), "{said}");
}

#[test]
fn only_the_unit_for_stores_has_a_network() {
    let unit = |name| fs::read_to_string(format!("{}/docs/systemd/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (local, store) = (unit("volfs@.service"), unit("volfs-store@.service"));
    let has = |unit: &str, line: &str| unit.lines().any(|l| l == line);
    assert!(has(&local, "IPAddressDeny=any") && has(&local, "RestrictAddressFamilies=AF_UNIX"));
    assert!(!store.contains("IPAddressDeny") && has(&store, "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6"));
    for line in ["NoNewPrivileges=yes", "SystemCallFilter=@system-service @mount", "DevicePolicy=closed"] {
        assert!(has(&local, line) && has(&store, line), "{line}");
    }
    // only the unit itself would see a mount made in such a view
    for option in ["PrivateTmp", "PrivateDevices=", "ProtectSystem", "ProtectHome", "ReadOnlyPaths", "DynamicUser"] {
        let sets = |unit: &str| unit.lines().any(|line| line.starts_with(option));
        assert!(!sets(&local) && !sets(&store), "{option}");
    }
}
