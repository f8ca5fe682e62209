//! Open folders with many names: what they cost the daemon.

use std::fs;
use std::path::Path;

use nix::dir::Dir;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use crate::support::{Mount, memory};

const NAMES: usize = 4000;
const HANDLES: usize = 100;

fn open(folder: &Path) -> Dir {
    Dir::open(folder, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty()).unwrap()
}

/// Opens a folder a hundred times at once: with a listing for each handle that was 50 MiB, and most of it stayed.
#[test]
fn handles_of_one_folder_share_its_listing() {
    let source = tempfile::tempdir().unwrap();
    let folder = source.path().join("many");
    fs::create_dir(&folder).unwrap();
    for name in 0..NAMES {
        fs::File::create(folder.join(format!("survey-{name:06}.zgy"))).unwrap();
    }
    let Some(mount) = Mount::with(source.path(), &["--cache-size", "16MiB"]) else { return };
    let many = mount.path("many");
    assert_eq!(fs::read_dir(&many).unwrap().count(), NAMES);
    let before = memory(mount.pid(), "RssAnon");
    let mut handles: Vec<Dir> = std::thread::scope(|scope| {
        let opening: Vec<_> = (0..HANDLES).map(|_| scope.spawn(|| open(&many))).collect();
        opening.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for handle in handles.iter_mut().step_by(20) {
        // the names and `.` and `..`
        assert_eq!(handle.iter().count(), NAMES + 2);
    }
    let open = memory(mount.pid(), "RssAnon");
    drop(handles);
    assert_eq!(fs::read_dir(&many).unwrap().count(), NAMES);
    let closed = memory(mount.pid(), "RssAnon");
    let limit = before + (8 << 20);
    assert!(open < limit, "{} MiB before, {} MiB while open", before >> 20, open >> 20);
    assert!(closed < limit, "{} MiB before, {} MiB afterwards", before >> 20, closed >> 20);
    assert!(before < 20 << 20, "{} MiB for {NAMES} names", before >> 20);
}
