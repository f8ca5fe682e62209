//! The units for systemd in docs/systemd.

use std::fs;
use std::process::Command;

use crate::support::{program, skip, text};

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
