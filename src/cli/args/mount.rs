//! The arguments of `volfs mount`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::file_system::FileSystemArgs;
use super::mount_options::MountOption;
use crate::fs::Ownership;

/// The arguments of `volfs mount`.
#[derive(Debug, Args)]
#[command(after_help = MOUNT_EXAMPLE)]
pub(crate) struct MountArgs {
    /// A folder of volumes, searched in depth, or one volume; or a URL of an object store
    ///
    /// s3://BUCKET/KEY, az://CONTAINER/KEY, gs://BUCKET/KEY, and https://HOST/PATH of a single volume. Credentials come from
    /// the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, AZURE_STORAGE_ACCOUNT_NAME and
    /// AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_CONNECTION_STRING, GOOGLE_APPLICATION_CREDENTIALS.
    pub source: PathBuf,

    /// An empty folder, outside SOURCE, that will show them; with --exec a temporary one if left out
    #[arg(required_unless_present = "exec")]
    pub mountpoint: Option<PathBuf>,

    /// Stay in the foreground and log to the terminal
    ///
    /// Ctrl-C (SIGINT) or SIGTERM unmounts.
    #[arg(short, long)]
    pub foreground: bool,

    /// What is shown, and with what means.
    #[command(flatten)]
    pub file_system: FileSystemArgs,

    /// Bypass the kernel's page cache
    ///
    /// Faster for programs that stream a volume once with reads of 256 KiB and more; slower for programs that read
    /// data again or in small pieces.
    #[arg(long)]
    pub direct_io: bool,

    /// Let other users into the mount
    ///
    /// They may read what they may read in SOURCE: each file and folder has the owner, group and mode of what it comes from,
    /// less writing (-o uid=, gid= and umask= say otherwise). Unless you are root, /etc/fuse.conf must have the line
    /// `user_allow_other`.
    #[arg(long)]
    pub allow_other: bool,

    /// Log to the end of this file
    ///
    /// [default: the system's log; with --foreground the terminal]. The environment variable RUST_LOG sets the level:
    /// error, warn, info (the default), debug or trace.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,

    /// Mount only while a command runs
    ///
    /// Must be the last option: all that follows is the command. It finds the mount point in the environment variable
    /// VOLFS_MNT, and has standard output to itself. When it ends the mount is taken away, even if something else uses
    /// it, and the exit status is that of the command: 128 and the number of the signal that ended it, 127 if there is
    /// no such program, 126 if it cannot be executed. Ctrl-C and SIGTERM are for the command.
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true, conflicts_with = "foreground")]
    pub exec: Option<Vec<OsString>>,

    /// The caller is mount(8): nothing is printed, and a line of /etc/fstab that is mounted already is no failure
    #[arg(long, hide = true)]
    pub called_by_mount: bool,

    /// Options as /etc/fstab has them, with commas between
    ///
    /// With an effect: the options above, with _ for - (allow_other, cache_size=SIZE, quality=LEVEL and so on); uid=USER
    /// and gid=GROUP, the owner and group of all files and folders, and umask=OCTAL, which gives all files the mode 0444
    /// and all folders 0555, less OCTAL (umask=022 lets everybody read everything, umask=077 only the owner). Accepted
    /// without an effect, since the mount is read-only or other programs act on them: defaults, ro, rw, dev, nodev,
    /// suid, nosuid, exec, noexec, auto, noauto, user, nouser, users, owner, group, nofail, _netdev, atime, noatime,
    /// relatime, norelatime, diratime, nodiratime, strictatime, nostrictatime, lazytime, nolazytime, sync, async,
    /// dirsync, nosymfollow, silent, loud, comment=*, x-*. An option that is also given by its own name has the value
    /// given there.
    #[arg(short = 'o', long = "options", value_name = "OPTIONS", value_delimiter = ',')]
    pub options: Vec<String>,

    /// The owner and mode of all files that `options` had.
    #[arg(skip)]
    pub ownership: Ownership,
}

impl MountArgs {
    /// Applies the options of `-o`.
    pub(crate) fn apply_options(&mut self) -> Result<(), String> {
        let (mut cache, mut threads, mut log, mut quality, mut views, mut zfp) = (None, None, None, None, None, None);
        // an option that is also given by its own name counts last
        let (mut store, mut disk, mut disk_size) = (Vec::new(), None, None);
        for text in std::mem::take(&mut self.options) {
            match MountOption::read(&text)? {
                MountOption::NoEffect => {}
                MountOption::AllowOther => self.allow_other = true,
                MountOption::DirectIo => self.direct_io = true,
                MountOption::FollowLinks => self.file_system.follow_links = true,
                MountOption::Foreground => self.foreground = true,
                MountOption::CacheSize(size) => cache = Some(size),
                MountOption::Threads(number) => threads = Some(number),
                MountOption::LogFile(file) => log = Some(file),
                MountOption::Quality(level) => quality = Some(level),
                MountOption::Views(names) => views = Some(names),
                MountOption::Zfp(decoder) => zfp = Some(decoder),
                MountOption::StoreOption(option) => store.push(option),
                MountOption::DiskCache(folder) => disk = Some(folder),
                MountOption::DiskCacheSize(size) => disk_size = Some(size),
                MountOption::Uid(uid) => self.ownership.uid = Some(uid),
                MountOption::Gid(gid) => self.ownership.gid = Some(gid),
                MountOption::Umask(umask) => self.ownership.umask = Some(umask),
            }
        }
        self.log_file = self.log_file.take().or(log);
        let named = &mut self.file_system;
        named.cache_size = named.cache_size.or(cache);
        named.threads = named.threads.or(threads);
        named.quality = named.quality.or(quality);
        named.views = named.views.take().or(views);
        named.zfp = named.zfp.or(zfp);
        named.disk_cache = named.disk_cache.take().or(disk);
        named.disk_cache_size = named.disk_cache_size.or(disk_size);
        store.append(&mut named.store_option);
        named.store_option = store;
        Ok(())
    }
}

const MOUNT_EXAMPLE: &str = "\
Example:
  mkdir -p ~/vol
  volfs mount --cache-size 2GiB ~/surveys ~/vol
  ls ~/vol/north.zgy/data

  volfs mount ~/surveys --exec sh -c 'cp $VOLFS_MNT/north.zgy/data/lod1.npy .'";
