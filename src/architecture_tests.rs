//! Checks the layout of the source: folders use only folders below them, and no files import each other in a circle.
//!
//! Imports are read as text: `use` lines and paths that begin with `crate::`, `super::` or `self::`. Tests are left
//! out. An import of a name that a `mod.rs` re-exports counts for the file that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders and files of `src`, from the top down. Each line uses only lines below it.
const FLOORS: &[&[&str]] = &[
    &["main", "internals"],
    &["cli"],
    &["mount", "serve"],
    &["fs"],
    &["view", "verify"],
    &["catalog"],
    &["array"],
    &["cache"],
    &["format"],
    &["source"],
    &["codec", "volume", "pool", "counters", "log_limit", "logging", "sequential"],
    &["memory", "safe_open"],
    &["sync"],
];

/// A module, by its path below the crate: `["array", "scan", "stream"]`.
type Module = Vec<String>;

/// The modules of the crate, and the imports of each file.
#[derive(Default)]
struct SourceTree {
    files: BTreeMap<Module, File>,
}

#[derive(Default)]
struct File {
    /// Paths that the code names, from the crate's root.
    paths: BTreeSet<Module>,
    /// Names that the file re-exports, and where they come from.
    reexports: BTreeMap<String, Module>,
}

impl SourceTree {
    fn read(root: &Path) -> Self {
        let mut tree = Self::default();
        tree.read_folder(root, root);
        tree
    }

    fn read_folder(&mut self, root: &Path, folder: &Path) {
        let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_stem().unwrap().to_str().unwrap();
            if path.is_dir() {
                if name != "tests" {
                    self.read_folder(root, &path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") && !is_test(name) {
                let below = path.strip_prefix(root).unwrap().with_extension("");
                let mut module: Module = below.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
                if matches!(name, "mod" | "lib") {
                    module.pop();
                }
                let file = File::parse(&module, &fs::read_to_string(&path).unwrap());
                self.files.insert(module, file);
            }
        }
    }

    /// Returns the file that defines the item at `path`.
    fn resolve(&self, path: &[String], depth: usize) -> Option<Module> {
        let mut at = Module::new();
        for (n, name) in path.iter().enumerate() {
            at.push(name.clone());
            if self.files.contains_key(&at) {
                continue;
            }
            at.pop();
            let reexports = self.files.get(&at)?.reexports.get(name);
            return match reexports {
                Some(from) if depth < 8 => self.resolve(&[&from[..], &path[n + 1..]].concat(), depth + 1).or(Some(at)),
                _ => Some(at),
            };
        }
        Some(at)
    }

    /// Returns which files each file uses.
    fn imports(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let uses = |(module, file): (&Module, &File)| {
            let mut used: BTreeSet<Module> =
                file.paths.iter().filter_map(|path| self.resolve(path, 0)).filter(|to| !to.is_empty()).collect();
            used.remove(module);
            (module.clone(), used)
        };
        self.files.iter().map(uses).collect()
    }
}

fn is_test(name: &str) -> bool {
    name == "tests" || name.ends_with("_tests") || name == "handmade"
}

impl File {
    fn parse(module: &[String], text: &str) -> Self {
        let code: String = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default()
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .map(|line| format!("{line}\n"))
            .collect();
        let mut file = Self::default();
        let mut rest = &code[..];
        while let Some(at) = rest.find("use ") {
            let is_statement = rest[..at].is_empty() || rest[..at].ends_with(['\n', ' ', ')']);
            let reexports = rest[..at].trim_end_matches(' ').ends_with("pub")
                || rest[..at].trim_end_matches(' ').ends_with("pub(super)")
                || rest[..at].trim_end_matches(' ').ends_with("pub(crate)");
            rest = &rest[at + 4..];
            let Some(end) = rest.find(';').filter(|_| is_statement) else { continue };
            let mut paths = Vec::new();
            expand(&rest[..end].replace(char::is_whitespace, " "), &Module::new(), &mut paths);
            for path in paths {
                let Some((full, name)) = absolute(module, &path) else { continue };
                if reexports {
                    file.reexports.insert(name, full);
                } else {
                    file.paths.insert(full);
                }
            }
        }
        for start in ["crate::", "super::"] {
            for (at, _) in code.match_indices(start) {
                let path: String =
                    code[at..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
                let path: Module = path.split("::").filter(|part| !part.is_empty()).map(Into::into).collect();
                let in_use = code[..at].rsplit(';').next().is_some_and(|line| line.contains("use "));
                if let Some((full, _)) = absolute(module, &path).filter(|_| !in_use) {
                    file.paths.insert(full);
                }
            }
        }
        file
    }
}

/// Collects the paths of a `use` tree.
fn expand(tree: &str, before: &[String], paths: &mut Vec<Module>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().split("::").map(|part| part.trim().to_owned());
        let path: Module =
            before.iter().cloned().chain(path.filter(|part| part != "self" && !part.is_empty())).collect();
        if !path.is_empty() {
            paths.push(path);
        }
        return;
    };
    let head = tree[..open].split("::").map(str::trim).filter(|part| !part.is_empty()).map(Into::into);
    let head: Module = before.iter().cloned().chain(head).collect();
    let (mut depth, mut from) = (0, open + 1);
    for (at, c) in tree.char_indices().skip(open) {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => {
                expand(&tree[from..at], &head, paths);
                return;
            }
            '}' => depth -= 1,
            ',' if depth == 1 => {
                expand(&tree[from..at], &head, paths);
                from = at + 1;
            }
            _ => {}
        }
    }
}

/// A path from the crate's root, and the name that it ends with; `None` if it leads out of the crate.
fn absolute(module: &[String], path: &[String]) -> Option<(Module, String)> {
    let mut at: Module = match path.first()?.as_str() {
        "crate" => Module::new(),
        "super" | "self" => module.to_vec(),
        _ => module.to_vec(),
    };
    let begins_inside = matches!(path[0].as_str(), "crate" | "super" | "self");
    for part in path {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => drop(at.pop()),
            name => at.push(name.to_owned()),
        }
    }
    // `use child::Name` in a mod.rs; anything else without a prefix is another crate
    let is_child = !begins_inside && !module.is_empty();
    (begins_inside || is_child).then(|| (at, path.last().cloned().unwrap_or_default()))
}

/// Returns the groups of files that import each other in circles.
fn circles(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = imports
        .keys()
        .map(|from| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
            while let Some(at) = next.pop() {
                next.extend(imports.get(at).into_iter().flatten().filter(|to| seen.insert(*to)));
            }
            (from, seen)
        })
        .collect();
    let mut circles: Vec<BTreeSet<Module>> = Vec::new();
    for (from, seen) in &reach {
        if seen.contains(*from) && circles.iter().all(|circle| !circle.contains(*from)) {
            let back = seen.iter().filter(|to| reach.get(**to).is_some_and(|seen| seen.contains(*from)));
            circles.push(back.map(|to| (**to).clone()).collect());
        }
    }
    circles
}

fn floor_of(module: &[String]) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module.first().map_or("lib", String::as_str)))
}

fn source_tree() -> SourceTree {
    SourceTree::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let imports = source_tree().imports();
    assert!(imports.values().map(BTreeSet::len).sum::<usize>() > 500, "the imports are read");
    let circles: Vec<String> = circles(&imports)
        .iter()
        .map(|circle| circle.iter().map(|m| m.join("/")).collect::<Vec<_>>().join(", "))
        .collect();
    assert!(circles.is_empty(), "circles:\n{}", circles.join("\n"));
}

#[test]
fn every_folder_uses_only_folders_below_it() {
    let mut wrong = Vec::new();
    for (from, used) in source_tree().imports() {
        let Some(floor) = floor_of(&from) else {
            assert!(from.is_empty(), "{} has no floor: add it to FLOORS", from.join("/"));
            continue;
        };
        for to in used {
            let below = floor_of(&to).is_some_and(|other| other > floor);
            if from[0] != to[0] && !below {
                wrong.push(format!("{} uses {}", from.join("/"), to.join("/")));
            }
        }
    }
    assert!(wrong.is_empty(), "imports that do not run down:\n{}", wrong.join("\n"));
}

#[test]
fn a_circle_would_be_found() {
    let files = [("a", "use super::b::B;"), ("b", "pub fn f() { crate::c::g() }"), ("c", "use crate::{a::A, b};")];
    let mut tree = SourceTree::default();
    tree.files.insert(Module::new(), File::default());
    for (name, text) in files {
        let module = vec![name.to_owned()];
        tree.files.insert(module.clone(), File::parse(&module, text));
    }
    assert_eq!(circles(&tree.imports()).iter().map(BTreeSet::len).collect::<Vec<_>>(), [3]);
}

#[test]
fn every_test_that_the_promises_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/semantics.md")).unwrap();
    let names = text.split('`').skip(1).step_by(2).filter(|name| name.contains("::") && !name.ends_with("::NAME"));
    let mut named = 0;
    for name in names {
        let (module, test) = name.rsplit_once("::").unwrap();
        let path = match module.strip_prefix("lib::") {
            Some(module) => root.join("src").join(module.replace("::", "/")),
            None => root.join("tests").join(module.replace("::", "/")),
        };
        let text = fs::read_to_string(path.with_extension("rs")).unwrap_or_default();
        assert!(text.contains(&format!("fn {test}(")), "there is no test {name}");
        named += 1;
    }
    assert!(named > 15, "the names are found: {named}");
}

#[test]
fn every_file_that_the_documents_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let modules: BTreeSet<String> = source_tree().files.into_keys().map(|module| module.join("/")).collect();
    let is_there = |name: &str| {
        let module = name.trim_end_matches(".rs");
        root.join("src").join(name).exists()
            || root.join(name).exists()
            || modules.iter().any(|path| path.ends_with(&format!("/{module}")))
    };
    let mut named = 0;
    for document in ["architecture.md", "adding-a-format.md", "adding-a-view.md"] {
        let text = fs::read_to_string(root.join("docs").join(document)).unwrap();
        for name in text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")) {
            // the examples' own files, and placeholders
            if !["brk", "NAME", "shape.rs"].iter().any(|part| name.contains(part)) {
                assert!(is_there(name), "{document} names {name}");
                named += 1;
            }
        }
    }
    assert!(named > 40, "the names are found: {named}");
}
