//! The arguments of `volfs mount`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::mount_options::{MountOption, cache_size, disk_cache_size, quality, threads};
use super::views::{self, Views, views};
use super::zfp::ZfpDecoder;
use crate::cli::text::size::Size;
use crate::source::StoreOption;

/// The arguments of `volfs mount`.
#[derive(Debug, Args)]
#[command(after_help = MOUNT_EXAMPLE)]
pub struct MountArgs {
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

    /// Memory for decoded bricks, as 512MiB or 2GiB
    ///
    /// Takes KiB, MiB and GiB; K, M and G mean the same, a plain number means bytes. [default: a quarter of the memory
    /// allowed to this process, control groups included, at most 4GiB]
    #[arg(long, value_name = "SIZE", value_parser = cache_size)]
    pub cache_size: Option<Size>,

    /// Threads that decode
    ///
    /// [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,

    /// Bypass the kernel's page cache
    ///
    /// Faster for programs that stream a volume once with reads of 256 KiB and more; slower for programs that read
    /// data again or in small pieces.
    #[arg(long)]
    pub direct_io: bool,

    /// Let other users read the mount
    ///
    /// Unless you are root, /etc/fuse.conf must have the line `user_allow_other`.
    #[arg(long)]
    pub allow_other: bool,

    /// Log to the end of this file
    ///
    /// [default: the system's log; with --foreground the terminal]. The environment variable RUST_LOG sets the level:
    /// error, warn, info (the default), debug or trace.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,

    /// Follow symbolic links that lead out of SOURCE
    ///
    /// Links that stay below SOURCE are always followed, others are not shown.
    #[arg(long)]
    pub follow_links: bool,

    /// An option of the object store, for a SOURCE that is a URL; may be repeated
    ///
    /// For instance region=eu-west-1, endpoint=http://127.0.0.1:9000, allow_http=true, anonymous=true (public data) or
    /// timeout=60s. Credentials are taken from the environment, by the names that the tools of the provider use, and never
    /// from the command line. docs/object-stores.md lists all.
    #[arg(long, value_name = "NAME=VALUE")]
    pub store_option: Vec<StoreOption>,

    /// Keep what an object store has sent in this folder, for other mounts and for later
    ///
    /// The folder must be empty, or a disk cache already; it is made if it does not exist. Only this user may read it.
    /// Several mounts may share it. Delete from it with: volfs cache --clear DIR
    #[arg(long, value_name = "DIR")]
    pub disk_cache: Option<PathBuf>,

    /// Disk space that --disk-cache may take, as 500GiB
    ///
    /// For all mounts together that share the folder. What was not used for the longest time goes first. [default: 10GiB]
    #[arg(long, value_name = "SIZE", value_parser = disk_cache_size)]
    pub disk_cache_size: Option<Size>,

    /// Decode only a part of the data: 0 to 15, of which 0 is the best quality
    ///
    /// For wavelet-coded VDS layers: level 0 leaves out the data that makes lossy samples exact, and each further level
    /// one more bit plane. Less is read and less is decoded, for a coarse look at slow or remote data. Other layers are
    /// not affected. [default: decode everything]
    #[arg(long, value_name = "LEVEL", value_parser = quality)]
    pub quality: Option<u8>,

    /// The decoder of ZFP-compressed bricks
    ///
    /// Both return the same samples, and refuse the same bricks. That of volfs is faster; libzfp is there for whoever
    /// wants to compare. [default: volfs]
    #[arg(long, value_name = "DECODER", value_enum)]
    pub zfp: Option<ZfpDecoder>,

    /// Show these views only
    #[arg(long, value_name = "LIST", value_parser = views, long_help = views::help())]
    pub views: Option<Views>,

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
    /// With an effect: the options above, with _ for - (allow_other, cache_size=SIZE, quality=LEVEL and so on). Accepted
    /// without an effect, since the mount is read-only or other programs act on them: defaults, ro, rw, dev, nodev,
    /// suid, nosuid, exec, noexec, auto, noauto, user, nouser, users, owner, group, nofail, _netdev, atime, noatime,
    /// relatime, norelatime, diratime, nodiratime, strictatime, nostrictatime, lazytime, nolazytime, sync, async,
    /// dirsync, nosymfollow, silent, loud, comment=*, x-*. An option that is also given by its own name has the value
    /// given there.
    #[arg(short = 'o', long = "options", value_name = "OPTIONS", value_delimiter = ',')]
    pub options: Vec<String>,
}

impl MountArgs {
    /// Applies the options of `-o`.
    ///
    /// # Errors
    /// One line that says which is wrong, and why.
    pub fn apply_options(&mut self) -> Result<(), String> {
        let (mut cache, mut threads, mut log, mut quality, mut views, mut zfp) = (None, None, None, None, None, None);
        // an option that is also given by its own name counts last
        let (mut store, mut disk, mut disk_size) = (Vec::new(), None, None);
        for text in std::mem::take(&mut self.options) {
            match MountOption::read(&text)? {
                MountOption::NoEffect => {}
                MountOption::AllowOther => self.allow_other = true,
                MountOption::DirectIo => self.direct_io = true,
                MountOption::FollowLinks => self.follow_links = true,
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
            }
        }
        self.cache_size = self.cache_size.or(cache);
        self.threads = self.threads.or(threads);
        self.log_file = self.log_file.take().or(log);
        self.quality = self.quality.or(quality);
        self.views = self.views.take().or(views);
        self.zfp = self.zfp.or(zfp);
        self.disk_cache = self.disk_cache.take().or(disk);
        self.disk_cache_size = self.disk_cache_size.or(disk_size);
        store.append(&mut self.store_option);
        self.store_option = store;
        Ok(())
    }
}

const MOUNT_EXAMPLE: &str = "\
Example:
  mkdir -p ~/vol
  volfs mount --cache-size 2GiB ~/surveys ~/vol
  ls ~/vol/north.zgy/data

  volfs mount ~/surveys --exec sh -c 'cp $VOLFS_MNT/north.zgy/data/lod1.npy .'";
