//! The probes of `volfs doctor`, and its checks on machines of many kinds.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// An ordinary user's machine, on which every check is passed.
fn healthy() -> Probes {
    Probes {
        device: Ok(()),
        mode: Some(0o666),
        helper: Some(Helper { path: "/usr/bin/fusermount3".into(), setuid: true }),
        root: false,
        privileges: Privileges { admin: false, helper: true },
        conf: "user_allow_other".into(),
        updatedb: None,
        release: "6.18.0".into(),
        mounts: Vec::new(),
        open_files: Some(1024),
        memory: 8 << 30,
        machine_memory: Some(8 << 30),
        cache: 2 << 30,
        syslog: true,
    }
}

/// Returns the findings after a change, except for those that are ok.
fn after(change: impl FnOnce(&mut Probes)) -> Vec<(Level, String)> {
    let mut probes = healthy();
    change(&mut probes);
    let odd = check(&probes).into_iter().filter(|finding| finding.level != Level::Ok);
    odd.map(|f| (f.level, format!("{}; {}", f.text, f.remedy.unwrap_or_default()))).collect()
}

fn only(level: Level, parts: &[&str], change: impl FnOnce(&mut Probes)) {
    let found = after(change);
    let [(found_level, text)] = found.as_slice() else { panic!("{parts:?}: {found:?}") };
    assert_eq!(*found_level, level, "{text}");
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
}

fn mount(place: &str) -> MountProbe {
    MountProbe { mountpoint: place.into(), source: "/data".into(), trouble: None, daemon: None, read_ahead: None }
}

fn error(kind: io::ErrorKind) -> io::Result<()> {
    Err(kind.into())
}

#[test]
fn a_healthy_machine_is_in_order() {
    assert_eq!(after(|_| ()), []);
    assert_eq!(after(|f| (f.root, f.privileges.admin, f.conf) = (true, true, String::new())), []);
}

#[test]
fn a_device_that_does_not_open_is_a_problem() {
    let missing = |f: &mut Probes| (f.device, f.mode) = (error(io::ErrorKind::NotFound), None);
    only(Level::Problem, &["/dev/fuse is missing; load it with `sudo modprobe fuse`"], missing);
    let denied = |f: &mut Probes| (f.device, f.mode) = (error(io::ErrorKind::PermissionDenied), Some(0o600));
    only(Level::Problem, &["by this user (mode 600)", "sudo chmod 666 /dev/fuse"], denied);
    only(Level::Problem, &["not even by root", "--device /dev/fuse"], |f| {
        denied(f);
        (f.root, f.privileges.admin) = (true, true);
    });
    only(Level::Note, &["not by all (mode 600)", "sudo chmod 666"], |f| f.mode = Some(0o600));
}

#[test]
fn missing_rights_to_mount_are_found() {
    only(Level::Problem, &["fusermount3 was not found", "apt install fuse3"], |f| f.helper = None);
    let plain = |f: &mut Probes| f.helper.as_mut().unwrap().setuid = false;
    only(Level::Problem, &["/usr/bin/fusermount3 is not setuid root", "sudo chmod u+s /usr/bin/fusermount3"], plain);
    only(Level::Problem, &["CAP_SYS_ADMIN", "no-new-privileges"], |f| f.privileges.helper = false);
    only(Level::Problem, &["CAP_SYS_ADMIN", "--cap-add SYS_ADMIN"], |f| f.root = true);
    let root = |f: &mut Probes| (f.root, f.privileges.admin) = (true, true);
    only(Level::Note, &["ordinary users", "apt install fuse3"], |f| {
        root(f);
        f.helper = None;
    });
    only(Level::Note, &["not setuid root", "sudo chmod u+s"], |f| {
        root(f);
        plain(f);
    });
}

#[test]
fn allow_other_that_is_not_permitted_is_noted() {
    only(Level::Note, &["allow_other", "echo user_allow_other | sudo tee -a /etc/fuse.conf"], |f| f.conf.clear());
}

#[test]
fn drawbacks_of_old_kernels_are_found() {
    let levels =
        |release: &str| after(|f| f.release = release.into()).into_iter().map(|(level, _)| level).collect::<Vec<_>>();
    assert_eq!(levels("6.6.0-rc1"), []);
    assert_eq!(levels("5.15.0-91-generic"), [Level::Note; 2]);
    assert_eq!(levels("4.18.0-513.el8.x86_64"), [Level::Note; 3]);
    assert_eq!(levels("3.10.0-1160.el7"), [Level::Problem]);
    only(Level::Note, &["Linux 6.1.0: with --direct-io, files cannot be mapped"], |f| f.release = "6.1.0".into());
    only(Level::Note, &["\"odd\""], |f| f.release = "odd".into());
}

#[test]
fn mounts_that_do_not_answer_are_named() {
    let with =
        |trouble| move |f: &mut Probes| f.mounts = vec![mount("/mnt/a"), MountProbe { trouble, ..mount("/mnt/b") }];
    assert_eq!(after(with(None)), []);
    let of_mount = |why| with(Some(Trouble::OfMount(why)));
    only(Level::Note, &["the daemon of the mount at /mnt/b died", "volfs umount /mnt/b"], of_mount(NoStatus::Dead));
    only(Level::Note, &["/mnt/b does not answer", "volfs umount --lazy /mnt/b"], of_mount(NoStatus::Silent));
    only(Level::Note, &["an error: odd", "volfs umount --lazy /mnt/b"], of_mount(NoStatus::Error("odd".into())));
    let of_daemon = |daemon, trouble| {
        let probe = MountProbe { trouble: Some(trouble), daemon, ..mount("/mnt/a") };
        move |f: &mut Probes| f.mounts = vec![probe]
    };
    only(
        Level::Note,
        &["the source /data of the mount at /mnt/a is gone; put it back", "volfs umount /mnt/a"],
        of_daemon(None, Trouble::SourceGone),
    );
    let source = |trouble| of_daemon(Some(Daemon { pid: 7, is_stopped: false }), trouble);
    // the number that the mount tells may be of any process
    assert!(!after(of_daemon(None, Trouble::SourceSilent))[0].1.contains("kill"));
    let answers = "the daemon of the mount at /mnt/a answers, but";
    only(
        Level::Note,
        &[answers, "source /data does not; check its file server", "kill 7"],
        source(Trouble::SourceSilent),
    );
    let stalls = Trouble::SourceStalls("the source has not answered for 48 s; 3 reads wait".into());
    only(
        Level::Note,
        &[answers, "its source /data stalls", "for 48 s; 3 reads wait; check its file server", "kill 7"],
        source(stalls),
    );
    let silent = |is_stopped| of_daemon(Some(Daemon { pid: 7, is_stopped }), Trouble::OfMount(NoStatus::Silent));
    only(Level::Note, &["/mnt/a does not answer; its daemon (process 7) is stopped", "kill -CONT 7"], silent(true));
    only(Level::Note, &["/mnt/a does not answer; its daemon (process 7) runs", "kill 7"], silent(false));
}

#[test]
fn a_changed_kernel_read_ahead_is_noted() {
    let with = |kib| {
        let read_ahead = Some((kib, "/sys/class/bdi/0:51/read_ahead_kb".into()));
        move |f: &mut Probes| f.mounts = vec![MountProbe { read_ahead, ..mount("/mnt/a") }]
    };
    for usual in [32, 64, 128] {
        assert_eq!(after(with(usual)), []);
    }
    only(
        Level::Note,
        &["4096 KiB ahead in /mnt/a", "echo 128 | sudo tee /sys/class/bdi/0:51/read_ahead_kb"],
        with(4096),
    );
    only(Level::Note, &["streaming is slower", "echo 32 |"], with(0));
}

#[test]
fn low_limits_are_noted() {
    only(Level::Note, &["256 files", "ulimit -n 1024"], |f| f.open_files = Some(256));
    assert_eq!(after(|f| f.open_files = None), []);
    only(Level::Note, &["no system log", "--log-file"], |f| f.syslog = false);
    let mut limited = healthy();
    limited.memory = 1 << 30;
    limited.cache = 256 << 20;
    let text = check(&limited).into_iter().find(|finding| finding.subject == "memory").unwrap().text;
    assert_eq!(
        text,
        "1.00 GiB for this process (of 8.00 GiB, by a control group); a mount's cache takes 256.00 MiB unless \
         --cache-size says otherwise"
    );
}

#[test]
fn an_updatedb_that_searches_mounts_is_noted() {
    let with = |conf: &'static str| move |f: &mut Probes| f.updatedb = Some(conf.into());
    assert_eq!(after(with("PRUNEFS=\"NFS fuse.volfs\"\n")), []);
    assert_eq!(after(with("# text\n PRUNEFS = \"fuse.sshfs FUSE.VOLFS nfs\"")), []);
    let extend = "sudo sed -i 's/^[ \\t]*PRUNEFS[ \\t]*=[ \\t]*\"/&fuse.volfs /' /etc/updatedb.conf";
    let noted = ["updatedb", "fuse.volfs", extend];
    only(Level::Note, &noted, with("PRUNE_BIND_MOUNTS=\"yes\"\nPRUNEFS=\"NFS fuse fuse.volfs2\"\n"));
    only(Level::Note, &noted, with("PRUNEFS=\"NFS\"\n# PRUNEFS=\"fuse.volfs\"\nPRUNEPATHS=\"fuse.volfs\"\n"));
    let append = "echo 'PRUNEFS=\"fuse.volfs\"' | sudo tee -a /etc/updatedb.conf";
    only(Level::Note, &[append], with("PRUNEPATHS=\"/tmp\"\n"));
}

#[test]
fn a_machine_is_probed_at_the_given_paths() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    for (file, text) in [
        ("dev/fuse", ""),
        ("etc/fuse.conf", "user_allow_other\n"),
        ("etc/updatedb.conf", "PRUNEFS=\"nfs\"\n"),
        ("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"),
        ("helper", ""),
        ("sys/class/bdi/0:51/read_ahead_kb", "4096\n"),
    ] {
        fs::create_dir_all(place(file).parent().unwrap()).unwrap();
        fs::write(place(file), text).unwrap();
    }
    fs::set_permissions(place("dev/fuse"), Permissions::from_mode(0o640)).unwrap();
    let mount = Mount { device: (0, 51), name: "volfs:/data".into(), ..Mount::for_tests(place("mnt")) };
    let other = Mount { id: 41, name: "sshfs".into(), mountpoint: place("other"), ..mount.clone() };
    let probes = Probes::collect(folder.path(), Some(place("helper")), &[mount, other]);
    assert!(probes.device.is_ok());
    assert_eq!(probes.mode, Some(0o640));
    assert_eq!(probes.helper, Some(Helper { path: place("helper"), setuid: false }));
    assert_eq!(
        (probes.conf.as_str(), probes.release.as_str(), probes.syslog),
        ("user_allow_other\n", "6.1.0-18-amd64", false)
    );
    assert_eq!(probes.updatedb.as_deref(), Some("PRUNEFS=\"nfs\"\n"));
    assert_eq!(probes.mounts.len(), 1);
    assert_eq!(probes.mounts[0].source.to_str(), Some("/data"));
    assert!(matches!(probes.mounts[0].trouble, Some(Trouble::OfMount(NoStatus::Error(_)))));
    assert_eq!(probes.mounts[0].read_ahead, Some((4096, place("sys/class/bdi/0:51/read_ahead_kb"))));
    assert!(probes.memory > 0 && probes.cache > 0);
    let nothing = Probes::collect(&place("none"), None, &[]);
    assert_eq!(nothing.device.unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!((nothing.mode, nothing.helper, nothing.conf.as_str()), (None, None, ""));
}
