//! Which symbolic links may be followed.

use std::io;
use std::path::{Path, PathBuf};

/// SymlinkPolicy may lead to places below one folder, or anywhere: the same rule for links of the source and for places that a dataset
/// names.
pub struct SymlinkPolicy {
    root: PathBuf,
    anywhere: bool,
}

impl SymlinkPolicy {
    /// SymlinkPolicy that may lead to `root` and below; anywhere if `anywhere`.
    #[must_use]
    pub fn below(root: &Path, anywhere: bool) -> Self {
        Self { root: root.canonicalize().unwrap_or_else(|_| root.to_owned()), anywhere }
    }

    /// Where a path leads, through whatever links; `None` if they lead to where they may not.
    ///
    /// # Errors
    /// Those of the system, also if there is nothing.
    pub fn real(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let real = path.canonicalize()?;
        Ok((self.anywhere || real.starts_with(&self.root)).then_some(real))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_stay_below_the_root_unless_told_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["root", "root/a", "roots", "other"] {
            fs::create_dir(at(name)).unwrap();
        }
        symlink("../other", at("root/out")).unwrap();
        symlink("../roots", at("root/near")).unwrap();
        symlink("a", at("root/in")).unwrap();
        symlink("nowhere", at("root/dangling")).unwrap();
        symlink("root", at("link")).unwrap();
        let links = SymlinkPolicy::below(&at("link"), false);
        let real = folder.path().canonicalize().unwrap().join("root/a");
        assert_eq!(links.real(&at("root/in")).unwrap(), Some(real.clone()));
        assert_eq!(links.real(&at("root/out/../root/a")).unwrap(), Some(real));
        assert_eq!(links.real(&at("root/out")).unwrap(), None);
        assert_eq!(links.real(&at("root/near")).unwrap(), None);
        assert!(links.real(&at("root/dangling")).is_err());
        assert!(SymlinkPolicy::below(&at("root"), true).real(&at("root/out")).unwrap().is_some());
    }
}
