//! `volfs doctor`.

use serde_json::Value;

use crate::support::{fuse_or_skip, text, volfs};

#[test]
fn doctor_agrees_with_mount() {
    let output = volfs().args(["doctor", "--json"]).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let can_mount = found["can_mount"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!can_mount)));
    for finding in found["findings"].as_array().unwrap() {
        let level = finding["level"].as_str().unwrap();
        assert_eq!(finding["remedy"].is_string(), level != "ok", "{finding}");
    }
    if fuse_or_skip() {
        assert!(can_mount, "{found}");
    }
    let printed = volfs().arg("doctor").output().unwrap();
    assert_eq!(printed.status.code(), output.status.code());
    assert!(
        text(&printed.stdout)
            .lines()
            .all(|l| ["ok  ", "note", "prob", "    "].iter().any(|start| l.starts_with(start)))
    );
    if !can_mount {
        assert!(text(&printed.stderr).contains("cannot mount yet"), "{}", text(&printed.stderr));
    }
}
