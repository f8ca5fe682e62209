//! Help, and wrong usage.

use crate::support::{test_data, text, volfs};

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
fn a_command_without_its_argument_is_wrong_usage() {
    for command in ["ls", "cache", "cat", "umount", "verify"] {
        assert_eq!(volfs().arg(command).output().unwrap().status.code(), Some(2), "{command}");
    }
    assert_eq!(volfs().args(["doctor", "x"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn wrong_usage_is_status_2() {
    for arguments in
        [&["mount"][..], &["mount", "--unheard-of", "a", "b"], &["mount", "a", "b", "c"], &["umount"], &["info"], &[]]
    {
        let output = volfs().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
    let bad_size = volfs().args(["mount", "--cache-size", "many", "a", "b"]).output().unwrap();
    assert_eq!(bad_size.status.code(), Some(2));
}

#[test]
fn help_has_an_example_for_each_command() {
    for command in ["mount", "umount", "info"] {
        let output = volfs().args([command, "--help"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains(&format!("volfs {command} ")), "{command}");
        assert!(text(&output.stdout).to_lowercase().contains("example"), "{command}");
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
