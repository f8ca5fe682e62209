//! Where symbolic links may lead.

use std::io;
use std::path::{Path, PathBuf};

/// Allows symbolic links that stay below one folder, or all of them. The same policy applies to paths that a dataset
/// names.
pub struct SymlinkPolicy {
    root: PathBuf,
    anywhere: bool,
}

impl SymlinkPolicy {
    /// Allows links that lead to `root` and below, or all links if `anywhere`.
    #[must_use]
    pub fn below(root: &Path, anywhere: bool) -> Self {
        Self { root: root.canonicalize().unwrap_or_else(|_| root.to_owned()), anywhere }
    }

    /// Resolves all links of a path; `None` if they lead to where they may not.
    ///
    /// # Errors
    /// Those of the system, also if nothing is there.
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
    fn links_stay_below_the_root_by_default() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["root", "root/a", "roots", "other"] {
            fs::create_dir(at(name)).unwrap();
        }
        symlink("../other", at("root/out")).unwrap();
        symlink("../roots", at("root/sibling")).unwrap();
        symlink("a", at("root/in")).unwrap();
        symlink("nowhere", at("root/dangling")).unwrap();
        symlink("root", at("link")).unwrap();
        let policy = SymlinkPolicy::below(&at("link"), false);
        let real = folder.path().canonicalize().unwrap().join("root/a");
        assert_eq!(policy.real(&at("root/in")).unwrap(), Some(real.clone()));
        assert_eq!(policy.real(&at("root/out/../root/a")).unwrap(), Some(real));
        assert_eq!(policy.real(&at("root/out")).unwrap(), None);
        assert_eq!(policy.real(&at("root/sibling")).unwrap(), None);
        assert!(policy.real(&at("root/dangling")).is_err());
        assert!(SymlinkPolicy::below(&at("root"), true).real(&at("root/out")).unwrap().is_some());
    }
}
