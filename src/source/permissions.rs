//! The rights to read a file or folder of this machine: its owner, its group and its mode; and the rights that are left
//! where several files and folders count.
//!
//! A mount can show each of its files with one owner, one group and one mode. A file of a mount may show several files
//! and folders, each with its own owner and access control list. A user may read what is shown only with the right to
//! all of them; some users with that right may not.

#[cfg(target_os = "linux")]
mod linux;

/// The owner, group, and rights of a file or folder. Nobody may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permissions {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The bits to read, and for folders to search, as in a mode.
    pub(crate) mode: u32,
}

impl Permissions {
    /// Those of root, without any right.
    pub(crate) const NONE: Self = Self { uid: 0, gid: 0, mode: 0 };

    /// Returns the rights to a folder that shows this file: who may read the file may list and search the folder.
    pub(crate) fn as_folder(self) -> Self {
        let read = self.mode & 0o444;
        Self { mode: read | read >> 2, ..self }
    }

    /// Returns the rights to files that this folder shows: a user that may list and search the folder may read them.
    pub(crate) fn as_file(self) -> Self {
        Self { mode: self.mode & 0o444 & self.mode << 2, ..self }
    }

    /// Returns the rights to what lies in this folder, as far as the folder decides: all, with the right to search.
    pub(crate) fn beyond(self) -> Self {
        let search = self.mode & 0o111;
        Self { mode: search | search << 2, ..self }
    }

    /// Returns rights that no user has without both. The owner and group are those of one of the two, or the owner is
    /// root, which may read whatever the mode says. Where the two differ, it takes those that leave the most rights,
    /// and of equal ones its own.
    pub(crate) fn restrict(self, other: Self) -> Self {
        if (self.uid, self.gid) == (other.uid, other.gid) {
            return Self { mode: self.mode & other.mode, ..self };
        }
        let both = |uid, gid| Self { uid, gid, mode: self.safe_mode(uid, gid) & other.safe_mode(uid, gid) };
        let owners = [self.uid, other.uid, 0].into_iter();
        let candidates = owners.flat_map(|uid| [both(uid, self.gid), both(uid, other.gid)]);
        // of equal ones the first
        candidates.rev().max_by_key(|candidate| candidate.worth()).unwrap_or(Self::NONE)
    }

    /// Returns roughly how many users have rights. Those of root are worth nothing, and an owner with fewer rights than
    /// the group is worse than no owner.
    fn worth(self) -> u32 {
        let (owner, group) = (self.mode >> 6 & 0o5, self.mode >> 3 & 0o5);
        match self.uid {
            0 => 2 * (self.mode & 0o055).count_ones() + 1,
            _ => 2 * self.mode.count_ones() + u32::from(group & !owner == 0),
        }
    }

    /// Returns whether every user with the rights of `other` has these, too. `is_member` tells whether the owner of
    /// `other` is in its group: files of a project are written by several of its members.
    pub(crate) fn covers(self, other: Self, is_member: impl FnOnce() -> bool) -> bool {
        let granted = self.safe_mode(other.uid, other.gid);
        let missing = other.mode & !granted;
        // as one of the group, unless it is the owner of these
        let as_member = |right: u32| self.gid == other.gid && self.uid != other.uid && right & self.mode << 3 == right;
        missing == 0 || missing & 0o077 == 0 && as_member(missing) && is_member()
    }

    /// Returns the mode under which a file of another owner and group grants nothing that this does not grant. The
    /// members of groups are unknown, so that any user may be a member.
    fn safe_mode(self, uid: u32, gid: u32) -> u32 {
        let class = |shift: u32| self.mode >> shift & 0o5;
        let (owner, group, rest) = (class(6), class(3), class(0));
        let is_owner = uid == self.uid;
        let of_owner = match uid {
            0 => owner | group | rest,
            _ if is_owner => owner,
            _ => group & rest,
        };
        let not_owner = if is_owner || self.uid == 0 { 0o5 } else { owner };
        let (of_group, of_rest) = if gid == self.gid { (group, rest) } else { (group & rest, group & rest) };
        of_owner << 6 | (of_group & not_owner) << 3 | (of_rest & not_owner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::linux::{GROUP, GROUP_OBJ, MASK, OTHER, USER, USER_OBJ, less_acl};
    use super::*;

    fn of(uid: u32, gid: u32, mode: u32) -> Permissions {
        Permissions { uid, gid, mode }
    }

    /// The rights that the kernel gives to a user who is not root.
    fn granted(to: Permissions, user: u32, groups: &std::collections::BTreeSet<u32>) -> u32 {
        let shift = if user == to.uid {
            6
        } else if groups.contains(&to.gid) {
            3
        } else {
            0
        };
        to.mode >> shift & 0o7
    }

    fn acl(entries: &[(u8, u8, u32)]) -> Vec<u8> {
        let mut list = vec![2, 0, 0, 0];
        for (tag, rights, id) in entries {
            list.extend([*tag, 0, *rights, 0]);
            list.extend(id.to_le_bytes());
        }
        list
    }

    #[test]
    fn of_two_owners_the_one_with_rights_is_worth_more() {
        assert!(of(1, 1, 0o550).worth() > of(1, 1, 0o055).worth());
        // others have as many, and root needs none
        assert!(of(1, 1, 0o550).worth() > of(0, 1, 0o550).worth());
        assert!(of(1, 1, 0o050).worth() < of(0, 1, 0o050).worth());
    }

    proptest! {
        #[test]
        fn both_together_give_nothing_that_one_denies(
            (a, b) in ((0u32..4, 0u32..4, 0u32..0o1000), (0u32..4, 0u32..4, 0u32..0o1000)),
            user in 1u32..5,
            groups in btree_set(0u32..5, 0..4),
        ) {
            let (a, b) = (of(a.0, a.1, a.2 & 0o555), of(b.0, b.1, b.2 & 0o555));
            let both = granted(a.restrict(b), user, &groups);
            prop_assert_eq!(both & !granted(a, user, &groups), 0);
            prop_assert_eq!(both & !granted(b, user, &groups), 0);
            let is_member = user != b.uid || groups.contains(&b.gid);
            if a.covers(b, || is_member) {
                prop_assert_eq!(granted(b, user, &groups) & !granted(a, user, &groups), 0);
            }
        }

        #[test]
        fn a_list_gives_nothing_to_whom_it_denies(
            (users, groups) in (btree_set((1u32..5, 0u8..8), 0..3), btree_set((1u32..5, 0u8..8), 0..3)),
            (owner, group, mask, other) in (0u32..8, 0u8..8, 0u8..8, 0u32..8),
            user in 1u32..6,
            member in btree_set(0u32..6, 0..4),
        ) {
            let (uid, gid) = (1, 1);
            let mut entries = vec![(USER_OBJ, owner as u8, u32::MAX)];
            entries.extend(users.iter().map(|(id, rights)| (USER, *rights, *id)));
            entries.push((GROUP_OBJ, group, u32::MAX));
            entries.extend(groups.iter().map(|(id, rights)| (GROUP, *rights, *id)));
            entries.extend([(MASK, mask, u32::MAX), (OTHER, other as u8, u32::MAX)]);
            let mode = owner << 6 | u32::from(mask) << 3 | other;
            let shown = of(uid, gid, less_acl(mode, &acl(&entries)).unwrap());
            // posix_acl_permission of the kernel
            let in_groups = || {
                let own = member.contains(&gid).then_some(group);
                own.into_iter().chain(groups.iter().filter(|(id, _)| member.contains(id)).map(|(_, rights)| *rights))
            };
            let (read, search) = (4u8, 1u8);
            for right in [read, search] {
                let allows = if user == uid {
                    owner as u8 & right != 0
                } else if let Some((_, rights)) = users.iter().find(|(id, _)| *id == user) {
                    rights & mask & right != 0
                } else if in_groups().count() > 0 {
                    in_groups().any(|rights| rights & mask & right != 0)
                } else {
                    other as u8 & right != 0
                };
                prop_assert!(allows || granted(shown, user, &member) & u32::from(right) == 0);
            }
        }
    }

    fn covers(a: Permissions, b: Permissions, is_member: bool) -> bool {
        a.covers(b, || is_member)
    }

    #[test]
    fn one_owner_and_group_lose_nothing() {
        assert_eq!(of(7, 8, 0o550).restrict(of(7, 8, 0o555)), of(7, 8, 0o550));
        // a folder of a group, and in it a file of a user for everybody
        assert_eq!(of(7, 8, 0o444).restrict(of(0, 9, 0o550)).mode, 0o440);
        assert_eq!(of(7, 8, 0o440).restrict(of(0, 8, 0o550)).mode, 0o440);
        assert_eq!(of(0, 0, 0o555).restrict(of(7, 8, 0o550)), of(7, 8, 0o550));
        // of two owners both are of the group
        assert_eq!(of(7, 8, 0o550).restrict(of(6, 8, 0o550)), of(0, 8, 0o550));
        assert!(covers(of(7, 8, 0o440), of(6, 8, 0o440), true) && !covers(of(7, 8, 0o440), of(6, 8, 0o440), false));
        assert!(!covers(of(7, 8, 0o440), of(6, 9, 0o440), true) && !covers(of(7, 8, 0o440), of(6, 8, 0o444), true));
        assert!(!covers(of(7, 8, 0o400), of(6, 8, 0o400), true) && !covers(of(7, 8, 0o040), of(7, 8, 0o440), true));
        assert!(covers(of(7, 8, 0o444), of(1, 2, 0o440), false) && !covers(of(7, 8, 0o440), of(7, 8, 0o444), true));
        assert!(covers(of(7, 8, 0o440), of(7, 8, 0o440), false) && !covers(of(7, 8, 0o440), of(7, 9, 0o440), true));
    }

    #[test]
    fn files_are_shown_as_folders_and_folders_show_files() {
        assert_eq!(of(0, 0, 0o440).as_folder().mode, 0o550);
        assert_eq!(of(0, 0, 0o551).as_file().mode, 0o440);
        assert_eq!(of(0, 0, 0o511).beyond().mode, 0o555);
        assert_eq!(of(0, 0, 0o454).beyond().mode, 0o050);
    }

    #[test]
    fn a_list_that_makes_no_sense_is_none() {
        let good = acl(&[(USER_OBJ, 6, 0), (GROUP_OBJ, 4, 0), (OTHER, 4, 0)]);
        assert_eq!(less_acl(0o544, &good), Some(0o544));
        // a group without rights, and a user with: the mask is in the mode
        let named = acl(&[(USER_OBJ, 6, 0), (USER, 4, 9), (GROUP_OBJ, 0, 0), (MASK, 4, 0), (OTHER, 0, 0)]);
        assert_eq!(less_acl(0o440, &named), Some(0o400));
        for bad in
            [&[][..], &[2, 0, 0], &[1, 0, 0, 0], &good[..good.len() - 1], &acl(&[(OTHER, 4, 0)]), &acl(&[(3, 7, 0)])]
        {
            assert_eq!(less_acl(0o444, bad), None);
        }
    }
}
