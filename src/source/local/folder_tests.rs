use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use super::*;

fn folder_of(root: &Path) -> Arc<LocalFolder> {
    open(SourceRoot::below(root, false), root)
}

fn open(source: Arc<SourceRoot>, folder: &Path) -> Arc<LocalFolder> {
    Folders::new(source, Arc::default()).open(folder, &RecentWrites::ignored()).unwrap()
}

/// Opens a folder again as a kernel without `openat2` does.
fn without_openat2(root: &Path) -> Arc<LocalFolder> {
    open(SourceRoot::without_openat2(root, false), root)
}

fn read(folder: &dyn Source, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
    let Some(length) = folder.len(name)? else { return Ok(None) };
    let mut out = vec![0; length as usize];
    Ok(folder.read_at(name, 0, &mut out, Blocking::Yes)?.then_some(out))
}

fn sample() -> (tempfile::TempDir, Arc<LocalFolder>) {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("a")).unwrap();
    fs::write(root.path().join("a/x"), b"0123").unwrap();
    let folder = folder_of(root.path());
    (root, folder)
}

#[test]
fn only_absent_files_are_missing() {
    let (root, folder) = sample();
    let made = std::process::Command::new("mkfifo").arg(root.path().join("a/pipe")).status();
    for folder in [folder, without_openat2(root.path())] {
        assert_eq!(read(&*folder, "a/x"), Ok(Some(b"0123".to_vec())));
        assert_eq!(read(&*folder, "a/y"), Ok(None));
        assert_eq!(read(&*folder, "b/x"), Ok(None));
        for name in ["a", "a/x/y", "", "/etc/passwd", "../x", "a/../a/x", "a//x", "./a/x"] {
            assert!(matches!(read(&*folder, name), Err(SourceError::Io { .. })), "{name}");
        }
        let mut out = [0; 3];
        assert!(matches!(
            folder.read_at("a/x", 2, &mut out, Blocking::Yes),
            Err(SourceError::TooShort { size: 4, .. })
        ));
        assert!(matches!(folder.read_at("a/x", u64::MAX, &mut out, Blocking::Yes), Err(SourceError::TooShort { .. })));
        if made.as_ref().is_ok_and(|status| status.success()) {
            assert!(matches!(read(&*folder, "a/pipe"), Err(SourceError::Io { .. })), "opening a pipe does not block");
        }
    }
}

#[test]
fn a_read_that_may_not_wait_opens_no_file() {
    let (_root, folder) = sample();
    let mut out = [0; 4];
    assert_eq!(folder.read_at("a/x", 0, &mut out, Blocking::No), Err(SourceError::WouldBlock));
    assert_eq!(folder.read_at("a/y", 0, &mut out, Blocking::No), Err(SourceError::WouldBlock));
    assert_eq!((read(&*folder, "a/x").unwrap().unwrap().len(), read(&*folder, "a/y")), (4, Ok(None)));
    assert!(matches!(folder.read_at("a/x", 0, &mut out, Blocking::No), Ok(true) | Err(SourceError::WouldBlock)));
    assert_eq!(folder.read_at("a/y", 0, &mut out, Blocking::No), Ok(false));
}

#[test]
fn links_are_followed_below_the_source_only() {
    let (root, folder) = sample();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x"), b"secret").unwrap();
    symlink("x", root.path().join("a/in")).unwrap();
    symlink(outside.path().join("x"), root.path().join("a/out")).unwrap();
    symlink("nowhere", root.path().join("a/dangling")).unwrap();
    symlink("a", root.path().join("b")).unwrap();
    symlink(outside.path(), root.path().join("c")).unwrap();
    symlink("nowhere", root.path().join("d")).unwrap();
    symlink("loop", root.path().join("loop")).unwrap();
    for (n, folder) in [folder, without_openat2(root.path())].into_iter().enumerate() {
        assert_eq!(read(&*folder, "a/in"), Ok(Some(b"0123".to_vec())));
        assert_eq!(read(&*folder, "b/x"), Ok(Some(b"0123".to_vec())));
        assert_eq!(read(&*folder, "b/y"), Ok(None));
        for name in ["a/out", "a/dangling", "c/x", "d/x"] {
            assert!(matches!(read(&*folder, name), Err(SourceError::Io { .. })), "{name}");
        }
        let text = |name: &str| read(&*folder, name).unwrap_err().to_string().replace(name, "NAME");
        assert_eq!(text("c/x"), text("c/y"), "nothing tells whether a file outside exists");
        assert_eq!(folder.folder("b").unwrap().identity(), folder.folder("a/").unwrap().identity());
        let why = |path: &str| folder.folder(path).err();
        assert!(
            ["c", "c/x", "c/y", "..", "../x", "/", "/nowhere"].iter().all(|path| why(path) == Some(NoFolder::Outside))
        );
        assert_eq!((why("nothing"), why("a/x")), (Some(NoFolder::Absent), Some(NoFolder::NotAFolder)));
        // without `openat2` nobody knows whether such a link leads out
        let unsaid = |why: NoFolder| Some(if n == 0 { why } else { NoFolder::Outside });
        assert_eq!((why("d"), why("loop")), (unsaid(NoFolder::Absent), unsaid(NoFolder::Loop)));
    }
}

#[test]
fn a_file_that_changes_makes_the_folder_changed() {
    type Change = fn(&Path);
    let changes: [Change; 3] = [
        |x| fs::write(x, b"01234").unwrap(),
        |x| fs::remove_file(x).unwrap(),
        |x| {
            fs::write(x.with_extension("new"), b"0123").unwrap();
            fs::rename(x.with_extension("new"), x).unwrap();
        },
    ];
    for change in changes {
        let (root, folder) = sample();
        let inner = folder.folder("a").unwrap();
        assert!(read(&*folder, "a/x").is_ok() && read(&*inner, "x").is_ok() && !folder.is_changed());
        change(&root.path().join("a/x"));
        assert_eq!(folder.read_at("a/x", 0, &mut [0; 2], Blocking::Yes), Err(SourceError::Changed));
        assert_eq!(folder.check_unchanged(), Err(SourceError::Changed));
        assert_eq!(read(&*folder, "a/other"), Err(SourceError::Changed));
        assert!(inner.is_changed() && inner.check_unchanged().is_err(), "a check notices it, too");
    }
}

#[test]
fn a_file_that_was_closed_is_compared_when_it_is_opened_again() {
    let (root, folder) = sample();
    assert!(read(&*folder, "a/x").is_ok());
    for n in 0..400 {
        fs::write(root.path().join(format!("a/{n}")), b"x").unwrap();
        assert!(read(&*folder, &format!("a/{n}")).is_ok());
    }
    let open = fs::read_dir("/proc/self/fd").unwrap().filter(|fd| {
        let target = fs::read_link(fd.as_ref().unwrap().path());
        target.is_ok_and(|target| target.starts_with(root.path()))
    });
    assert!(open.count() <= 384);
    fs::write(root.path().join("a/x"), b"other").unwrap();
    assert_eq!(read(&*folder, "a/x"), Err(SourceError::Changed));
}

#[test]
fn a_missing_file_is_remembered_for_a_second_only() {
    let (root, folder) = sample();
    let inner = folder.folder("a").unwrap();
    assert_eq!((read(&*folder, "a/y"), read(&*inner, "y")), (Ok(None), Ok(None)));
    fs::write(root.path().join("a/y"), b"late").unwrap();
    assert!(inner.is_changed());
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(read(&*folder, "a/y"), Err(SourceError::Changed));
    assert!(folder.is_changed());
}

#[test]
fn entries_are_listed_by_kind() {
    let (root, folder) = sample();
    symlink("a", root.path().join("link")).unwrap();
    fs::write(root.path().join("file"), b"").unwrap();
    let mut all = Vec::new();
    folder
        .list("", &mut |name, kind| {
            all.push((name.to_owned(), kind));
            true
        })
        .unwrap();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [("a", EntryKind::Folder), ("file", EntryKind::File), ("link", EntryKind::Link)];
    assert_eq!(all, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert_eq!(folder.list("nothing", &mut |_, _| panic!("an entry")), Ok(()));
}
