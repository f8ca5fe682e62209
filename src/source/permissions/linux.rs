//! How the rights to a file of this machine are found out.

use std::ffi::CString;
use std::fs::Metadata;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

use nix::unistd::{Gid, Uid, User, getgrouplist};
use rustix::fs::getxattr;
use rustix::io::Errno;

use super::Permissions;

/// The most bytes of an access control list that are read. A longer one counts as one that denies.
const LONGEST_ACL: usize = 4 << 10;
/// The tags of its entries.
pub(super) const USER_OBJ: u8 = 0x01;
pub(super) const USER: u8 = 0x02;
pub(super) const GROUP_OBJ: u8 = 0x04;
pub(super) const GROUP: u8 = 0x08;
pub(super) const MASK: u8 = 0x10;
pub(super) const OTHER: u8 = 0x20;
/// Read and search (or execute), for the owner, the group and others.
const READ_AND_SEARCH: u32 = 0o555;

impl Permissions {
    /// Returns those of a file or folder that was opened, perhaps with `O_PATH`. What an access control list of POSIX
    /// denies to some users is denied to all users that the mode cannot tell from them.
    pub(crate) fn from_file(file: BorrowedFd<'_>, metadata: &Metadata) -> Self {
        let mode = metadata.mode() & READ_AND_SEARCH;
        // a list can only matter where somebody besides the owner has a right
        let mode = if mode & 0o055 == 0 { mode } else { with_acl(file, mode) };
        Self { uid: metadata.uid(), gid: metadata.gid(), mode }
    }

    /// Returns whether the owner is in the group, as far as this machine knows its users. May block (NSS).
    pub(crate) fn owner_is_member(self) -> bool {
        let Ok(Some(owner)) = User::from_uid(Uid::from_raw(self.uid)) else { return false };
        let Ok(name) = CString::new(owner.name) else { return false };
        getgrouplist(&name, owner.gid).is_ok_and(|groups| groups.contains(&Gid::from_raw(self.gid)))
    }
}

/// Returns a mode less what the file's access control list denies.
fn with_acl(file: BorrowedFd<'_>, mode: u32) -> u32 {
    let mut list = [0; LONGEST_ACL];
    // a descriptor that was opened with O_PATH gives no attributes
    match getxattr(format!("/proc/self/fd/{}", file.as_raw_fd()), "system.posix_acl_access", &mut list[..]) {
        Ok(length) => list.get(..length).and_then(|list| less_acl(mode, list)).unwrap_or(mode & 0o500),
        Err(Errno::NODATA | Errno::NOTSUP) => mode,
        // there is a list that cannot be read
        Err(_) => mode & 0o500,
    }
}

/// Returns a mode less what a list in the kernel's form denies (`linux/posix_acl_xattr.h`: a version, then entries of a
/// tag, rights and a number); `None` if it is not of that form.
///
/// The group bits of the mode are the list's mask then, so the group has its own entry within the mask. Users that are
/// named may be in the group or among the others, and members of named groups among the others, so that these have no
/// right that one of the named has not.
pub(super) fn less_acl(mode: u32, list: &[u8]) -> Option<u32> {
    let (version, entries) = list.split_at_checked(4)?;
    if version != [2, 0, 0, 0] || entries.len() % 8 != 0 {
        return None;
    }
    let (mut group, mut mask, mut users, mut groups) = (None, 0o7, None, None);
    for entry in entries.chunks_exact(8) {
        let &[tag, _, rights, _, ..] = entry else { return None };
        let rights = u32::from(rights);
        let all = |so_far: Option<u32>| Some(so_far.unwrap_or(0o7) & rights);
        match tag {
            USER => users = all(users),
            GROUP_OBJ => group = Some(rights),
            GROUP => groups = all(groups),
            MASK => mask = rights,
            USER_OBJ | OTHER => {}
            _ => return None,
        }
    }
    let within_mask = |rights: Option<u32>| rights.map_or(0o7, |rights| rights & mask);
    let group = group? & mask & within_mask(users);
    let others = within_mask(users) & within_mask(groups);
    Some(mode & (0o700 | (group & 0o7) << 3 | (others & 0o7)))
}
