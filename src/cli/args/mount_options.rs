//! The options of `-o`, as /etc/fstab and mount(8) have them, and the parsers of their values.

use std::path::PathBuf;

use crate::cli::machine::limits;
use crate::cli::text::size::Size;

/// A limit beyond any useful number of threads.
const MAX_THREADS: usize = 1024;

/// Options that need no action: they hold for every mount, which is read-only and has neither devices nor programs, or
/// mount(8) and systemd act on them. The empty text stands for two commas in a row.
const WITHOUT_EFFECT: [&str; 13] =
    ["", "ro", "rw", "dev", "nodev", "suid", "nosuid", "exec", "noexec", "noauto", "user", "nofail", "_netdev"];

/// The end of the error for an unknown option.
const KNOWN_OPTIONS: &str = "there are allow_other, direct_io, cache_size=SIZE, threads=N, log_file=FILE, and without an effect ro, rw, dev, \
     nodev, suid, nosuid, exec, noexec, noauto, user, nofail, _netdev and x-...";

/// One of the options of `-o`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountOption {
    /// Accepted, without an effect.
    NoEffect,
    /// As `--allow-other`.
    AllowOther,
    /// As `--direct-io`.
    DirectIo,
    /// As `--cache-size`.
    CacheSize(Size),
    /// As `--threads`.
    Threads(usize),
    /// As `--log-file`.
    LogFile(PathBuf),
}

impl MountOption {
    /// Reads the text between two commas.
    ///
    /// # Errors
    /// What is wrong with the text. An unknown option is refused, since it may have been meant to protect something.
    pub fn read(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some(("cache_size", size)) => cache_size(size).map(Self::CacheSize),
            Some(("threads", n)) => threads(n).map(Self::Threads),
            Some(("log_file", "")) => Err("log_file= needs the name of a file".to_owned()),
            Some(("log_file", file)) => Ok(Self::LogFile(file.into())),
            Some((name, _)) if name.starts_with("x-") => Ok(Self::NoEffect),
            Some(_) => Err(format!("no such option with a value; {KNOWN_OPTIONS}")),
            None => Self::read_word(text),
        }
    }

    fn read_word(word: &str) -> Result<Self, String> {
        match word {
            "allow_other" => Ok(Self::AllowOther),
            "direct_io" => Ok(Self::DirectIo),
            _ if WITHOUT_EFFECT.contains(&word) || word.starts_with("x-") => Ok(Self::NoEffect),
            "cache_size" | "threads" | "log_file" => Err(format!("{word} needs a value: {word}=...")),
            _ => Err(format!("no such option; {KNOWN_OPTIONS}")),
        }
    }
}

/// Reads a number of threads.
///
/// # Errors
/// What is wrong with the text.
pub fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=MAX_THREADS).contains(&n) => Ok(n),
        _ => Err(format!("not a number from 1 to {MAX_THREADS}")),
    }
}

/// Reads a size of the cache, at most the memory of this machine.
///
/// # Errors
/// What is wrong with the text.
pub fn cache_size(text: &str) -> Result<Size, String> {
    let size = Size::read(text)?;
    match limits::memory_of_machine() {
        Some(memory) if size.bytes() > memory => Err(format!("this machine has {} of memory", Size::of(memory))),
        _ => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_mount_and_systemd_are_accepted() {
        let usual = "ro,rw,dev,nodev,suid,nosuid,exec,noexec,noauto,user,nofail,_netdev,x-systemd.automount,";
        for word in usual.split(',') {
            assert_eq!(MountOption::read(word), Ok(MountOption::NoEffect), "{word}");
        }
        assert_eq!(MountOption::read("x-gvfs-name=Volumes"), Ok(MountOption::NoEffect));
    }

    #[test]
    fn options_of_volfs_are_read() {
        assert_eq!(MountOption::read("allow_other"), Ok(MountOption::AllowOther));
        assert_eq!(MountOption::read("direct_io"), Ok(MountOption::DirectIo));
        assert_eq!(MountOption::read("threads=3"), Ok(MountOption::Threads(3)));
        assert_eq!(MountOption::read("log_file=/var/log/v=1"), Ok(MountOption::LogFile("/var/log/v=1".into())));
        let size = MountOption::read("cache_size=64MiB");
        assert!(matches!(size, Ok(MountOption::CacheSize(size)) if size.bytes() == 64 << 20));
    }

    #[test]
    fn unknown_options_and_values_are_refused() {
        for text in [
            "uid=0",
            "noatime",
            "allow_root",
            "remount",
            "cache_size",
            "threads=0",
            "threads=-1",
            "log_file=",
            "ro=1",
            "direct_io=yes",
            "defaults ",
        ] {
            assert!(MountOption::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_cache_beyond_the_memory_is_refused() {
        assert!(cache_size("1048576GiB").is_err());
    }
}
