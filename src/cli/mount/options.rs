//! The options of `-o`, as /etc/fstab and mount(8) have them: each is translated to an argument of `volfs mount`.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::ContextKind;
use clap::{Args, Command};
use nix::unistd::{Group, User};

use super::MountArgs;
use crate::cli::error::CliError;

/// Options that need no action: they hold for every mount, which is read-only and has neither devices nor programs nor
/// access times, or mount(8) and systemd act on them.
const WITHOUT_EFFECT: &str = "defaults ro rw dev nodev suid nosuid exec noexec auto noauto user users nouser owner group nofail _netdev atime \
     noatime relatime norelatime diratime nodiratime strictatime nostrictatime lazytime nolazytime sync async dirsync \
     nosymfollow silent loud";

/// Arguments that are not options of `-o`.
const OTHERS: [&str; 4] = ["exec", "options", "called-by-mount", "help"];

/// Similarity (0 to 1) from which a known name is suggested for an unknown one. Edits are counted, since most names are
/// short: `uid` of other file systems does not mean `suid`, which begins and ends like it.
const SIMILAR: f64 = 0.8;

/// Translates options to arguments of `volfs mount`. Refuses those that are unknown, since they may have been meant to
/// protect something.
pub(in crate::cli) fn arguments(options: &[String]) -> Result<Vec<OsString>, CliError> {
    let mount = MountArgs::augment_args(Command::new("mount"));
    let failed = |text, why| CliError::argument(format!("cannot mount with -o {text}: {why}"));
    let translated = options.iter().map(|text| argument(text, &mount).map_err(|why| failed(text, why)));
    translated.filter_map(Result::transpose).collect()
}

/// Returns the error for the value of an option that clap refuses.
pub(in crate::cli) fn refused(error: &clap::Error) -> CliError {
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let name = context(ContextKind::InvalidArg);
    let name = name.trim_start_matches("--").split([' ', '=']).next().unwrap_or_default().replace('-', "_");
    let text = error.to_string();
    let first_line = || text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let (value, why) = match error.source() {
        Some(why) => (format!("={}", context(ContextKind::InvalidValue)), why.to_string()),
        None => (String::new(), first_line().to_owned()),
    };
    CliError::argument(format!("cannot mount with -o {name}{value}: {why}"))
}

/// Translates the text between two commas; `None` if it has no effect.
fn argument(text: &str, mount: &Command) -> Result<Option<OsString>, String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let is_ignored = match value {
        Some(_) => name == "comment",
        None => name.is_empty() || without_effect().any(|known| known == name),
    };
    if is_ignored || name.starts_with("x-") {
        return Ok(None);
    }
    let (_, long, placeholder) = own(mount).find(|(own, ..)| own == name).ok_or_else(|| unknown(name, mount))?;
    match (placeholder, value) {
        (None, None) => Ok(Some(format!("--{long}").into())),
        (None, Some(_)) => Err(format!("{name} takes no value")),
        (Some(placeholder), None | Some("")) => Err(format!("it needs a value: {name}={placeholder}")),
        (Some(_), Some(value)) => Ok(Some(format!("--{long}={value}").into())),
    }
}

fn without_effect() -> impl Iterator<Item = &'static str> {
    WITHOUT_EFFECT.split_ascii_whitespace()
}

/// Returns the arguments of `volfs mount` that are options of `-o`: the name of each there, its own name, and the
/// placeholder that help has for its value, if it takes one.
fn own(mount: &Command) -> impl Iterator<Item = (String, &str, Option<&str>)> {
    mount.get_arguments().filter_map(|arg| {
        let long = arg.get_long().filter(|long| !OTHERS.contains(long))?;
        let values = arg.get_value_names().filter(|_| arg.get_action().takes_values());
        Some((long.replace('-', "_"), long, values.and_then(|values| values.first()).map(|name| name.as_str())))
    })
}

/// Returns the reason for an unknown option, with the most similar known one.
fn unknown(name: &str, mount: &Command) -> String {
    let wanted = name.replace('-', "_").to_lowercase();
    let own = own(mount).map(|(name, _, placeholder)| name + placeholder.map_or("", |_| "="));
    let known = own.chain(without_effect().map(str::to_owned));
    let likeness = |known: &String| strsim::normalized_damerau_levenshtein(&wanted, known.trim_end_matches('='));
    let nearest = known.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|known| likeness(known) >= SIMILAR);
    match nearest {
        Some(nearest) => format!("there is no such option; did you mean {nearest}?"),
        None => "there is no such option; volfs mount --help lists them".to_owned(),
    }
}

pub(super) fn user(text: &str) -> Result<u32, String> {
    id(text, |name| Ok(User::from_name(name)?.map(|user| user.uid.as_raw())))
}

pub(super) fn group(text: &str) -> Result<u32, String> {
    id(text, |name| Ok(Group::from_name(name)?.map(|group| group.gid.as_raw())))
}

fn id(text: &str, find: impl Fn(&str) -> nix::Result<Option<u32>>) -> Result<u32, String> {
    match text.parse() {
        Ok(u32::MAX) => Err("this number means no user and no group".to_owned()),
        Ok(id) => Ok(id),
        Err(_) => find(text).ok().flatten().ok_or_else(|| format!("this machine does not know {text}")),
    }
}

/// Parses an octal number of rights.
pub(super) fn umask(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(umask @ 0..=0o777) => Ok(umask),
        _ => Err("not an octal number from 0 to 777".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cli::{Cli, Command as Typed};

    fn mount(options: &str) -> Result<MountArgs, String> {
        let typed = ["volfs", "mount", "/s", "m", "-o", options].map(OsString::from);
        match Cli::read(typed.to_vec()).map_err(|error| error.to_string())?.command {
            Typed::Mount(args) => Ok(args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_of_mount_and_systemd_are_accepted() {
        let usual = "defaults,ro,rw,dev,nodev,suid,nosuid,exec,noexec,auto,noauto,user,nouser,users,owner,group,nofail,\
            _netdev,atime,noatime,relatime,norelatime,diratime,nodiratime,strictatime,nostrictatime,lazytime,\
            nolazytime,sync,async,dirsync,nosymfollow,silent,loud,comment=the surveys,comment=,\
            x-systemd.automount,,x-gvfs-name=Volumes";
        let options: Vec<String> = usual.split(',').map(str::to_owned).collect();
        assert_eq!(arguments(&options).unwrap(), [""; 0]);
    }

    #[test]
    fn options_of_volfs_are_read() {
        let args = mount(
            "allow_other,direct_io,follow_links,foreground,threads=3,quality=0,log_file=/var/log/v=1,uid=7,gid=root,\
             umask=027,cache_size=1MiB,store_option=region=a,store_option=timeout=60s",
        )
        .unwrap();
        let fs = &args.file_system;
        assert!(args.allow_other && args.direct_io && fs.follow_links && args.foreground);
        assert_eq!((fs.threads, fs.quality, fs.cache_size.unwrap().0), (Some(3), Some(0), 1 << 20));
        assert_eq!(args.log_file.as_deref(), Some(Path::new("/var/log/v=1")));
        assert_eq!((args.uid, args.gid, args.umask), (Some(7), Some(0), Some(0o27)));
        assert_eq!(fs.store.store_option.len(), 2);
        for wrong in ["uid=-1", "uid=4294967295", "gid=no such", "umask=8", "umask=1000", "umask=-1", "umask"] {
            assert!(mount(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_option_that_is_also_given_by_its_name_has_the_value_given_there() {
        let typed = "volfs mount --threads 2 /s m -o threads=3,threads=4,quality=1 --allow-other -o allow_other";
        let Typed::Mount(args) = Cli::read(typed.split(' ').map(OsString::from).collect()).unwrap().command else {
            panic!("another command")
        };
        assert_eq!((args.file_system.threads, args.file_system.quality, args.allow_other), (Some(2), Some(1), true));
        let twice = "volfs mount --threads 2 --threads 3 /s m -o ro".split(' ').map(OsString::from).collect();
        assert_eq!(Cli::read(twice).unwrap_err().exit_status(), 2);
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
            let error = mount(text).unwrap_err();
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
            ("cache_size", "it needs a value: cache_size=SIZE"),
            ("log_file=", "it needs a value"),
            ("threads=0", "not a number from 1 to 1024"),
            ("threads=-1", "not a number"),
            ("quality=16", "not a number from 0 to 15"),
            ("views=raw:tif", "there is no view tif; did you mean tiff?"),
            ("direct_io=yes", "direct_io takes no value"),
            ("ro=1", "no such option"),
            ("comment", "no such option"),
            ("cache_size=1048576GiB", "this machine has"),
        ] {
            let error = mount(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
