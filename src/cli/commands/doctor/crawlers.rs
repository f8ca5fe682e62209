//! Programs that search all file systems, and whether they are told to leave mounts of volfs alone.

use super::finding::Finding;
use super::probes::UPDATEDB_CONF;

/// The type of a mount of volfs.
const KIND: &str = "fuse.volfs";

/// Checks the text of updatedb.conf.
pub(crate) fn updatedb(conf: &str) -> Finding {
    let subject = "updatedb";
    let pruned = pruned_types(conf);
    // updatedb does not heed case here
    if pruned.is_some_and(|types| types.split_ascii_whitespace().any(|kind| kind.eq_ignore_ascii_case(KIND))) {
        return Finding::ok(subject, format!("updatedb leaves mounts of volfs ({KIND}) alone"));
    }
    let text = "updatedb (for locate) searches every mount of volfs (fuse.volfs) that root may read, and so reads the \
                header of every volume each day";
    let remedy = match pruned {
        Some(_) => format!(r#"sudo sed -i 's/^[ \t]*PRUNEFS[ \t]*=[ \t]*"/&{KIND} /' {UPDATEDB_CONF}"#),
        None => format!(r#"echo 'PRUNEFS="{KIND}"' | sudo tee -a {UPDATEDB_CONF}"#),
    };
    Finding::note(subject, text, format!("to keep it out type: {remedy}"))
}

/// Returns the types of file systems that are left out: the value of PRUNEFS, in double quotes.
fn pruned_types(conf: &str) -> Option<&str> {
    conf.lines().rev().find_map(|line| {
        let value = line.trim_start().strip_prefix("PRUNEFS")?.trim_start().strip_prefix('=')?;
        value.trim_start().strip_prefix('"')?.split('"').next()
    })
}
