//! The options of `-o`, as /etc/fstab and mount(8) have them, and the parsers of their values.

use std::path::PathBuf;

use nix::unistd::{Group, User};

use super::views::{Views, views};
use super::zfp::{ZfpDecoder, zfp};
use crate::cli::machine::limits;
use crate::cli::text::size::Size;
use crate::source::StoreOption;

/// The smallest disk cache: it has room for a few dozen bricks of any size.
const SMALLEST_DISK_CACHE: u64 = 64 << 20;
/// A limit beyond any useful number of threads.
const MAX_THREADS: usize = 1024;

/// The lowest quality.
const MAX_QUALITY: u8 = 15;

/// Options that need no action: they hold for every mount, which is read-only and has neither devices nor programs nor
/// access times, or mount(8) and systemd act on them. The empty text stands for two commas in a row.
const WITHOUT_EFFECT: [&str; 35] = [
    "",
    "defaults",
    "ro",
    "rw",
    "dev",
    "nodev",
    "suid",
    "nosuid",
    "exec",
    "noexec",
    "auto",
    "noauto",
    "user",
    "users",
    "nouser",
    "owner",
    "group",
    "nofail",
    "_netdev",
    "atime",
    "noatime",
    "relatime",
    "norelatime",
    "diratime",
    "nodiratime",
    "strictatime",
    "nostrictatime",
    "lazytime",
    "nolazytime",
    "sync",
    "async",
    "dirsync",
    "nosymfollow",
    "silent",
    "loud",
];

/// The options of volfs, those with a value with an example of it. Each but the last three is an option of the command
/// line with _ for -.
const OWN: [(&str, &str); 16] = [
    ("allow_other", ""),
    ("direct_io", ""),
    ("follow_links", ""),
    ("foreground", ""),
    ("cache_size", "2GiB"),
    ("threads", "4"),
    ("log_file", "/var/log/volfs.log"),
    ("quality", "2"),
    ("views", "raw:npy"),
    ("zfp", "libzfp"),
    ("store_option", "region=eu-west-1"),
    ("disk_cache", "/var/cache/volfs"),
    ("disk_cache_size", "500GiB"),
    ("uid", "1000"),
    ("gid", "1000"),
    ("umask", "027"),
];

/// How similar (0 to 1) the name of an option must be to one that is unknown to be suggested. Edits are counted, since
/// most names are short: `uid` of other file systems is not meant to be `suid`, which begins and ends like it.
const SIMILAR: f64 = 0.8;

/// One of the options of `-o`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MountOption {
    /// Accepted, without an effect.
    NoEffect,
    /// As `--allow-other`.
    AllowOther,
    /// As `--direct-io`.
    DirectIo,
    /// As `--follow-links`.
    FollowLinks,
    /// As `--foreground`.
    Foreground,
    /// As `--cache-size`.
    CacheSize(Size),
    /// As `--threads`.
    Threads(usize),
    /// As `--log-file`.
    LogFile(PathBuf),
    /// As `--quality`.
    Quality(u8),
    /// As `--views`.
    Views(Views),
    /// As `--zfp`.
    Zfp(ZfpDecoder),
    /// As `--store-option`.
    StoreOption(StoreOption),
    /// As `--disk-cache`.
    DiskCache(PathBuf),
    /// As `--disk-cache-size`.
    DiskCacheSize(Size),
    /// The owner of all files, by number.
    Uid(u32),
    /// The group of all files, by number.
    Gid(u32),
    /// What all files and folders lack of 0444 and 0555.
    Umask(u32),
}

impl MountOption {
    /// Reads the text between two commas. An unknown option is refused, since it may have been meant to protect
    /// something.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        if name.starts_with("x-") || (name == "comment" && value.is_some()) {
            return Ok(Self::NoEffect);
        }
        let own = OWN.iter().find(|(own, _)| *own == name);
        let read = match (own, value) {
            (None, None) if WITHOUT_EFFECT.contains(&name) => Ok(Self::NoEffect),
            (None, _) => Err(unknown(name)),
            (Some((_, "")), None) => Self::read_word(name),
            (Some((_, "")), Some(_)) => Err(format!("{name} takes no value")),
            (Some((_, example)), None | Some("")) => Err(format!("it needs a value, as in {name}={example}")),
            (Some(_), Some(value)) => Self::read_value(name, value),
        };
        read.map_err(|why| format!("cannot mount with -o {text}: {why}"))
    }

    fn read_word(name: &str) -> Result<Self, String> {
        match name {
            "allow_other" => Ok(Self::AllowOther),
            "direct_io" => Ok(Self::DirectIo),
            "follow_links" => Ok(Self::FollowLinks),
            "foreground" => Ok(Self::Foreground),
            _ => Err(unknown(name)),
        }
    }

    fn read_value(name: &str, value: &str) -> Result<Self, String> {
        match name {
            "cache_size" => cache_size(value).map(Self::CacheSize),
            "threads" => threads(value).map(Self::Threads),
            "quality" => quality(value).map(Self::Quality),
            "views" => views(value).map(Self::Views),
            "zfp" => zfp(value).map(Self::Zfp),
            "disk_cache" => Ok(Self::DiskCache(value.into())),
            "disk_cache_size" => disk_cache_size(value).map(Self::DiskCacheSize),
            "store_option" => value.parse().map(Self::StoreOption),
            "log_file" => Ok(Self::LogFile(value.into())),
            "uid" => {
                id(value, |name| User::from_name(name).map(|user| user.map(|user| user.uid.as_raw()))).map(Self::Uid)
            }
            "gid" => id(value, |name| Group::from_name(name).map(|group| group.map(|group| group.gid.as_raw())))
                .map(Self::Gid),
            "umask" => umask(value).map(Self::Umask),
            _ => Err(unknown(name)),
        }
    }
}

/// The reason for an unknown option, with the known one that is most like it, if there is one.
fn unknown(name: &str) -> String {
    let wanted = name.replace('-', "_").to_lowercase();
    let likeness = |known: &str| strsim::normalized_damerau_levenshtein(&wanted, known);
    let known = OWN.iter().map(|(own, _)| *own).chain(WITHOUT_EFFECT);
    let nearest = known.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|known| likeness(known) >= SIMILAR);
    match nearest {
        Some(nearest) => {
            let needs_value = OWN.iter().any(|(own, example)| *own == nearest && !example.is_empty());
            format!("there is no such option; did you mean {nearest}{}?", if needs_value { "=" } else { "" })
        }
        None => "there is no such option; volfs mount --help lists them".to_owned(),
    }
}

/// Reads the number of a user or group, or the name of one that `find` knows.
fn id(text: &str, find: impl Fn(&str) -> nix::Result<Option<u32>>) -> Result<u32, String> {
    match text.parse() {
        Ok(u32::MAX) => Err("this number means nobody".to_owned()),
        Ok(id) => Ok(id),
        Err(_) => find(text).ok().flatten().ok_or_else(|| format!("this machine knows no {text}")),
    }
}

/// Reads an octal number of rights.
fn umask(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(umask @ 0..=0o777) => Ok(umask),
        _ => Err("not an octal number from 0 to 777".to_owned()),
    }
}

/// Reads a number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=MAX_THREADS).contains(&n) => Ok(n),
        _ => Err(format!("not a number from 1 to {MAX_THREADS}")),
    }
}

/// Reads a level of quality.
pub(crate) fn quality(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(level) if level <= MAX_QUALITY => Ok(level),
        _ => Err(format!("not a number from 0 to {MAX_QUALITY}")),
    }
}

/// Reads a size of a disk cache.
pub(crate) fn disk_cache_size(text: &str) -> Result<Size, String> {
    let size = Size::read(text)?;
    if size.bytes() < SMALLEST_DISK_CACHE {
        return Err(format!("a disk cache needs {} or more", Size::of(SMALLEST_DISK_CACHE)));
    }
    Ok(size)
}

/// Reads a size of the cache, at most the memory of this machine.
pub(crate) fn cache_size(text: &str) -> Result<Size, String> {
    let size = Size::read(text)?;
    match limits::memory_of_machine() {
        Some(memory) if size.bytes() > memory => Err(format!("this machine has {} of memory", Size::of(memory))),
        _ => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Cli;

    #[test]
    fn options_of_mount_and_systemd_are_accepted() {
        let usual = "defaults,ro,rw,dev,nodev,suid,nosuid,exec,noexec,auto,noauto,user,nouser,users,owner,group,nofail,\
            _netdev,atime,noatime,relatime,norelatime,diratime,nodiratime,strictatime,nostrictatime,lazytime,\
            nolazytime,sync,async,dirsync,nosymfollow,silent,loud,comment=the surveys,comment=,\
            x-systemd.automount,,x-gvfs-name=Volumes";
        for word in usual.split(',') {
            assert_eq!(MountOption::read(word), Ok(MountOption::NoEffect), "{word}");
        }
    }

    #[test]
    fn options_of_volfs_are_read() {
        assert_eq!(MountOption::read("allow_other"), Ok(MountOption::AllowOther));
        assert_eq!(MountOption::read("direct_io"), Ok(MountOption::DirectIo));
        assert_eq!(MountOption::read("follow_links"), Ok(MountOption::FollowLinks));
        assert_eq!(MountOption::read("foreground"), Ok(MountOption::Foreground));
        assert_eq!(MountOption::read("threads=3"), Ok(MountOption::Threads(3)));
        assert_eq!(MountOption::read("quality=0"), Ok(MountOption::Quality(0)));
        assert_eq!(MountOption::read("zfp=libzfp"), Ok(MountOption::Zfp(ZfpDecoder::Libzfp)));
        assert_eq!(MountOption::read("zfp=volfs"), Ok(MountOption::Zfp(ZfpDecoder::Volfs)));
        assert_eq!(MountOption::read("log_file=/var/log/v=1"), Ok(MountOption::LogFile("/var/log/v=1".into())));
        assert_eq!(MountOption::read("uid=7"), Ok(MountOption::Uid(7)));
        assert_eq!(MountOption::read("gid=root"), Ok(MountOption::Gid(0)));
        assert_eq!(MountOption::read("umask=027"), Ok(MountOption::Umask(0o27)));
        for wrong in ["uid=-1", "uid=4294967295", "gid=no such", "umask=8", "umask=1000", "umask=-1", "umask"] {
            assert!(MountOption::read(wrong).is_err(), "{wrong}");
        }
        let size = MountOption::read("cache_size=64MiB");
        assert!(matches!(size, Ok(MountOption::CacheSize(size)) if size.bytes() == 64 << 20));
    }

    #[test]
    fn every_option_of_mount_has_a_form() {
        // --exec takes the rest of a command line, and -o itself is no option of -o
        let others = ["exec", "options", "called-by-mount", "help"];
        let cli = Cli::command();
        let mount = cli.find_subcommand("mount").unwrap();
        let names = mount.get_arguments().filter_map(|arg| Some((arg, arg.get_long()?)));
        for (arg, name) in names.filter(|(_, name)| !others.contains(name)) {
            let own = OWN.iter().find(|(own, _)| *own == name.replace('-', "_"));
            let (own, example) = own.unwrap_or_else(|| panic!("-o lacks {name}"));
            assert_eq!(!example.is_empty(), arg.get_action().takes_values(), "{name}");
            let text = if example.is_empty() { (*own).to_owned() } else { format!("{own}={example}") };
            assert!(MountOption::read(&text).is_ok_and(|option| option != MountOption::NoEffect), "{text}");
        }
    }

    #[test]
    fn an_unknown_option_is_refused_in_one_line_with_the_nearest() {
        for (text, nearest) in [
            ("cachesize=1GiB", Some("cache_size=")),
            ("cache-size=1GiB", Some("cache_size=")),
            ("allowother", Some("allow_other")),
            ("no_atime", Some("noatime")),
            ("netdev", Some("_netdev")),
            ("default", Some("defaults")),
            ("qualty=3", Some("quality=")),
            ("NOEXEC", Some("noexec")),
            ("guid=0", None),
            ("remount", None),
            ("drop_privileges", None),
            ("defaults ", Some("defaults")),
        ] {
            let error = MountOption::read(text).unwrap_err();
            assert!(
                !error.contains('\n') && error.contains(&format!("-o {text}: there is no such option; ")),
                "{error}"
            );
            match nearest {
                Some(nearest) => assert!(error.ends_with(&format!("did you mean {nearest}?")), "{error}"),
                None => assert!(error.ends_with("volfs mount --help lists them"), "{error}"),
            }
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        for (text, reason) in [
            ("cache_size", "it needs a value, as in cache_size=2GiB"),
            ("log_file=", "it needs a value"),
            ("threads=0", "not a number from 1 to 1024"),
            ("threads=-1", "not a number"),
            ("quality=16", "not a number from 0 to 15"),
            ("views=raw:tif", "there is no view tif; did you mean tiff?"),
            ("zfp=zfp", "neither volfs nor libzfp"),
            ("direct_io=yes", "direct_io takes no value"),
            ("ro=1", "no such option"),
            ("comment", "no such option"),
            ("cache_size=1048576GiB", "this machine has"),
        ] {
            let error = MountOption::read(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
