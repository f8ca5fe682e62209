//! Names of folders and files that could not be looked at.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::Arc;

use super::node::NodeId;
use crate::sync::Mutex;

/// The greatest number of names: of a source whose entries fail under ever new names, the others are left out.
const MAX_NAMES: usize = 1 << 16;

/// Names that listings show although nothing is known of them, since a look at them hangs. Each gets a number once and
/// for all, like a node.
#[derive(Default)]
pub(crate) struct UnseenNames(Mutex<Names>);

#[derive(Default)]
struct Names {
    by_number: Vec<Arc<OsStr>>,
    by_name: HashMap<(NodeId, Arc<OsStr>), u32>,
}

impl UnseenNames {
    /// Returns the number of a name in a folder; `None` if there are too many names.
    pub(crate) fn number(&self, folder: NodeId, name: &OsStr) -> Option<u32> {
        let mut names = self.0.lock();
        let key = (folder, Arc::from(name));
        if let Some(number) = names.by_name.get(&key) {
            return Some(*number);
        }
        let number = names.by_number.len();
        if number >= MAX_NAMES {
            return None;
        }
        let number = u32::try_from(number).ok()?;
        names.by_number.push(Arc::clone(&key.1));
        names.by_name.insert(key, number);
        Some(number)
    }

    /// Returns the name with a number.
    pub(crate) fn name(&self, number: u32) -> Option<Arc<OsStr>> {
        self.0.lock().by_number.get(number as usize).cloned()
    }
}
