//! The modules of the page as one script, which a browser has sooner than two dozen: each module becomes a function that
//! returns what it exports.
//!
//! Only what the modules use is understood: imports of names and exports of declarations, each at the start of a line.

/// Returns a script of the modules that one of them needs, and that one, which comes last.
pub(super) fn script(modules: &[(&str, &str)], main: &str) -> String {
    let (mut script, mut done) = (String::new(), Vec::new());
    add(modules, main, &mut done, &mut script);
    script
}

/// Adds a module, after those that it imports, unless it is there.
fn add<'a>(modules: &[(&'a str, &'a str)], name: &str, done: &mut Vec<&'a str>, script: &mut String) {
    let Some(&(name, text)) = modules.iter().find(|(known, _)| *known == name) else { return };
    if done.contains(&name) {
        return;
    }
    done.push(name);
    let (mut body, mut exports) = (String::new(), Vec::new());
    for line in text.lines() {
        if let Some((names, from)) = import(line) {
            add(modules, from, done, script);
            body += &format!("const {{{}}} = {};", names.replace(" as ", ": "), variable(from));
        } else if let Some(declared) = line.strip_prefix("export ") {
            exports.extend(declared_name(declared));
            body += declared;
        } else {
            body += line;
        }
        body.push('\n');
    }
    let exports = exports.join(", ");
    *script += &format!("const {} = (() => {{\n{body}return {{ {exports} }};\n}})();\n", variable(name));
}

/// Returns the names between the braces of an import, and the file.
fn import(line: &str) -> Option<(&str, &str)> {
    let (names, from) = line.strip_prefix("import {")?.split_once("} from \"./")?;
    Some((names, from.strip_suffix("\";")?))
}

/// Returns the name in a declaration: `async function name(`, `class Name {`, `const NAME = `.
fn declared_name(declaration: &str) -> Option<&str> {
    let words = declaration.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.into_iter().find(|word| !matches!(*word, "async" | "function" | "class" | "const"))
}

/// Returns the variable of what a module exports.
fn variable(name: &str) -> String {
    format!("${}", name.trim_end_matches(".js"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_follow_those_that_they_import() {
        let modules = [
            ("main.js", "import { a, b as c } from \"./one.js\";\nimport { d } from \"./two.js\";\n\na(c, d);\n"),
            ("one.js", "// names\nimport { d } from \"./two.js\";\nexport function a() {}\nexport const b = d;\n"),
            ("other.js", "export class Other {}\n"),
            ("two.js", "export async function d() {}\n"),
        ];
        let expected = "const $two = (() => {\nasync function d() {}\nreturn { d };\n})();\n\
            const $one = (() => {\n// names\nconst { d } = $two;\nfunction a() {}\nconst b = d;\nreturn { a, b };\n})();\n\
            const $main = (() => {\nconst { a, b: c } = $one;\nconst { d } = $two;\n\na(c, d);\nreturn {  };\n})();\n";
        assert_eq!(script(&modules, "main.js"), expected);
    }
}
