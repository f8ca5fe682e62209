//! What the tests on a real mount share: mounting, the fixtures and what has to be found in them.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Long enough for anything on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The program under test.
pub fn volfs() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volfs"));
    command.stdin(Stdio::null());
    command
}

/// Whether this machine can mount. Says why not on stderr, past the capture of test output.
pub fn fuse_or_skip() -> bool {
    let why = why_no_fuse();
    if let Some(why) = why {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // in one piece, so that threads do not mix their lines
        let _ = io::stderr().write_all(format!("SKIPPED {test}: {why}\n").as_bytes());
        return false;
    }
    true
}

fn why_no_fuse() -> Option<String> {
    if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
        return Some(format!("/dev/fuse: {error}"));
    }
    if nix::unistd::geteuid().is_root() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let set = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
        let may_mount = u64::from_str_radix(set, 16).unwrap() >> 21 & 1 == 1;
        return (!may_mount).then(|| "root lacks CAP_SYS_ADMIN".to_owned());
    }
    let found = std::env::split_paths(&std::env::var_os("PATH")?).any(|dir| dir.join("fusermount3").exists());
    (!found).then(|| "fusermount3 is missing (package fuse3)".to_owned())
}

/// A source mounted in a temporary folder; unmounted when dropped, also by a panic.
pub struct Mount {
    point: PathBuf,
    front: Option<Child>,
    output: Option<Output>,
    pid: Option<i32>,
    folder: TempDir,
}

impl Mount {
    /// Mounts `source`; `None` (after saying why) if this machine cannot mount.
    pub fn of(source: impl AsRef<Path>) -> Option<Self> {
        Self::with(source, &[])
    }

    /// Mounts `source` with further arguments.
    pub fn with(source: impl AsRef<Path>, arguments: &[&str]) -> Option<Self> {
        let mut mount = Self::prepare()?;
        let output = mount.command(source.as_ref(), arguments).output().unwrap();
        assert!(output.status.success(), "volfs mount failed: {}\n{}", text(&output.stderr), mount.log());
        mount.output = Some(output);
        mount.pid = Some(mount.pid_from_status());
        Some(mount)
    }

    /// Mounts `source` by a process that stays in front.
    pub fn in_front(source: impl AsRef<Path>, arguments: &[&str]) -> Option<Self> {
        let mut mount = Self::prepare()?;
        let mut command = mount.command(source.as_ref(), arguments);
        command.arg("--foreground").stdout(Stdio::null()).stderr(Stdio::piped());
        mount.front = Some(command.spawn().unwrap());
        wait_until("the mount answers", || mount.path(".volfs/status.json").exists());
        mount.pid = Some(mount.pid_from_status());
        Some(mount)
    }

    fn prepare() -> Option<Self> {
        if !fuse_or_skip() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let point = folder.path().join("mount");
        fs::create_dir(&point).unwrap();
        Some(Self { point, front: None, output: None, pid: None, folder })
    }

    fn command(&self, source: &Path, arguments: &[&str]) -> Command {
        let mut command = volfs();
        command.arg("mount").args(arguments).arg("--log-file").arg(self.folder.path().join("log"));
        command.arg(source).arg(&self.point);
        command
    }

    /// Where it is mounted.
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// A path in the mount.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.point.join(path)
    }

    /// A path in the folder of the first layer of a dataset.
    pub fn data(&self, dataset: &str, file: &str) -> PathBuf {
        self.point.join(dataset).join("data").join(file)
    }

    /// What `volfs mount` has printed.
    pub fn output(&self) -> &Output {
        self.output.as_ref().unwrap()
    }

    /// The daemon's process id.
    pub fn pid(&self) -> i32 {
        self.pid.unwrap()
    }

    /// The process in front, which the caller takes over.
    pub fn take_front(&mut self) -> Child {
        self.front.take().unwrap()
    }

    /// What the daemon has logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// status.json of the mount.
    pub fn status(&self) -> Value {
        json(self.path(".volfs/status.json"))
    }

    /// One of the counters of status.json.
    pub fn counter(&self, name: &str) -> u64 {
        let status = self.status();
        status["counters"][name].as_u64().unwrap_or_else(|| panic!("no counter {name} in {status}"))
    }

    /// Runs `volfs umount` with further arguments.
    pub fn umount(&self, arguments: &[&str]) -> Output {
        volfs().arg("umount").args(arguments).arg(&self.point).output().unwrap()
    }

    /// Whether something is mounted there, whether it answers or not.
    pub fn is_mounted(&self) -> bool {
        mounted_name(&self.point).is_some()
    }

    fn pid_from_status(&self) -> i32 {
        i32::try_from(self.status()["pid"].as_i64().expect("status.json has the pid")).unwrap()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(io::stderr(), "log of the daemon:\n{}", self.log());
        }
        while self.is_mounted() {
            let gone = self.umount(&["--lazy"]).status.success();
            if !gone && nix::mount::umount2(&self.point, nix::mount::MntFlags::MNT_DETACH).is_err() {
                let _ = Command::new("fusermount3").args(["-u", "-z"]).arg(&self.point).status();
                break;
            }
        }
        if let Some(mut child) = self.front.take() {
            let _ = child.kill();
            let _ = child.wait();
        } else if let Some(pid) = self.pid {
            let began = Instant::now();
            while process_lives(pid) && began.elapsed() < Duration::from_secs(10) {
                sleep(Duration::from_millis(5));
            }
            if process_lives(pid) && is_volfs(pid) {
                let _ = signal(pid, nix::sys::signal::SIGKILL);
            }
        }
    }
}

/// The name under which something is mounted at `point`, as /proc/mounts has it.
pub fn mounted_name(point: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let name = words.next()?;
        (words.next()? == point.to_str().unwrap()).then(|| name.to_owned())
    })
}

/// Whether a process is there and not a zombie.
pub fn process_lives(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

fn is_volfs(pid: i32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == Path::new(env!("CARGO_BIN_EXE_volfs")))
}

/// Sends a signal to one process.
pub fn signal(pid: i32, signal: nix::sys::signal::Signal) -> nix::Result<()> {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal)
}

/// Waits for something that has to come true, and fails the test if it does not.
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(comes_true(PATIENCE, condition), "waited in vain until {what}");
}

/// Whether something comes true in time.
pub fn comes_true(within: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if began.elapsed() > within {
            return false;
        }
        sleep(Duration::from_millis(10));
    }
}

/// Waits for a process to end.
pub fn wait_for(child: &mut Child) -> ExitStatus {
    let mut status = None;
    wait_until("the process ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

/// Bytes of a program's output as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks that a program has failed with this status and one line on stderr, and gives the line.
pub fn one_line_of_failure(output: &Output, status: i32) -> String {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "stderr: {stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "not one line: {stderr}");
    assert_eq!(text(&output.stdout), "");
    stderr.trim_end().to_owned()
}

/// A JSON file.
pub fn json(path: impl AsRef<Path>) -> Value {
    let path = path.as_ref();
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An array of whole numbers in JSON.
pub fn numbers(value: &Value) -> Vec<u64> {
    let list = value.as_array().unwrap_or_else(|| panic!("not a list: {value}"));
    list.iter().map(|n| n.as_u64().unwrap_or_else(|| panic!("not whole numbers: {value}"))).collect()
}

/// An array of numbers in JSON.
pub fn floats(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap_or_else(|| panic!("not a list: {value}"));
    list.iter().map(|n| n.as_f64().unwrap_or_else(|| panic!("not numbers: {value}"))).collect()
}

/// CRC-32 as the fixtures have it: eight hexadecimal digits.
pub fn crc(bytes: &[u8]) -> String {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    format!("{:08x}", crc.sum())
}

/// `length` bytes of a file from `offset` on, in one or more positioned reads.
pub fn read_at(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut out = vec![0; length];
    file.read_exact_at(&mut out, offset)?;
    Ok(out)
}

/// The folder of the test data.
pub fn test_data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

/// A temporary source with copies of some of the ZGY files.
pub fn source_with(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        fs::copy(test_data("zgy").join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// A ZGY file of the test data and what has to be found in it.
pub struct Fixture {
    /// The file's name, with its extension.
    pub name: String,
    /// What scripts/make_fixtures.py says of it.
    pub expected: Value,
}

/// All files of the test data, those to be refused included.
fn all_fixtures() -> Vec<Fixture> {
    let mut found: Vec<_> = fs::read_dir(test_data("zgy"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .map(|path| {
            let expected = json(&path);
            Fixture { name: expected["file"].as_str().unwrap().to_owned(), expected }
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() > 50, "the test data is not complete");
    found
}

/// The files in which everything has to be readable.
pub fn fixtures() -> Vec<Fixture> {
    all_fixtures().into_iter().filter(|f| f.expected["invalid"] != true).collect()
}

/// One of them.
pub fn fixture(name: &str) -> Fixture {
    all_fixtures().into_iter().find(|f| f.name == name).unwrap()
}

/// The files that have to be refused at `stage`: `open` or `read`.
pub fn damaged(stage: &str) -> Vec<Fixture> {
    all_fixtures().into_iter().filter(|f| f.expected["stage"] == stage).collect()
}

impl Fixture {
    /// What is expected of each level that has to be shown.
    pub fn levels(&self) -> &[Value] {
        self.expected["lods"].as_array().unwrap()
    }

    /// Shape of LOD 0.
    pub fn shape(&self) -> Vec<u64> {
        numbers(&self.expected["size"])
    }

    /// NumPy's name of the sample type.
    pub fn dtype(&self) -> &str {
        self.expected["datatype"]["name"].as_str().unwrap()
    }

    /// NumPy's description of the sample type, as in a .npy header.
    pub fn descr(&self) -> String {
        self.expected["datatype"]["numpy"].as_str().unwrap().replace("<i1", "|i1").replace("<u1", "|u1")
    }

    /// Bytes of a sample.
    pub fn sample_bytes(&self) -> u64 {
        self.expected["datatype"]["numpy"].as_str().unwrap()[2..].parse().unwrap()
    }

    /// The samples of a level where the test data has them.
    pub fn samples(&self, lod: usize) -> Option<Vec<u8>> {
        let name = self.levels()[lod]["npy"].as_str()?;
        Some(Npy::parse(&fs::read(test_data("zgy").join(name)).unwrap()).samples)
    }
}

/// A NumPy file.
#[derive(Debug, PartialEq)]
pub struct Npy {
    /// Type of a sample: `<f4`.
    pub descr: String,
    /// Whether the first axis is the fastest.
    pub fortran_order: bool,
    /// Samples along each axis.
    pub shape: Vec<u64>,
    /// The samples' bytes.
    pub samples: Vec<u8>,
}

impl Npy {
    /// Parses a file of version 1.0, and checks that the samples are aligned.
    pub fn parse(file: &[u8]) -> Self {
        assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
        let length = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!(length % 64, 0);
        let header = std::str::from_utf8(&file[10..length]).unwrap();
        assert!(header.ends_with('\n'));
        let value = |key: &str, until: &str| {
            let rest = header.split_once(&format!("'{key}': ")).unwrap().1;
            rest.split_once(until).unwrap().0.to_owned()
        };
        let shape = value("shape", ")");
        Self {
            descr: value("descr", ",").trim_matches('\'').to_owned(),
            fortran_order: value("fortran_order", ",") == "True",
            shape: shape
                .trim_start_matches('(')
                .split(',')
                .map(str::trim)
                .filter(|n| !n.is_empty())
                .map(|n| n.parse().unwrap())
                .collect(),
            samples: file[length..].to_vec(),
        }
    }
}

/// Random numbers that are the same in each run.
pub struct Dice(u64);

impl Dice {
    /// Numbers that depend on `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
