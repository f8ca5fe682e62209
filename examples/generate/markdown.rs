//! Turns a document of docs/ into a manual page: headings, paragraphs, lists, tables and code.

/// Returns the manual page of a document whose first heading is its title.
pub fn page(name: &str, section: u8, date: &str, names: &str, text: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH {} {section} \"{date}\" \"volfs {version}\" \"volfs\"\n.SH NAME\n{}\n\
         .SH DESCRIPTION\n",
        name.to_uppercase(),
        escaped(names)
    );
    let mut blocks = Blocks::default();
    text.lines().skip(1).for_each(|line| blocks.line(line, &mut page));
    blocks.end(&mut page);
    page.push_str(".SH SEE ALSO\nvolfs(1), volfs-mount(1), volfs-info(1), volfs-stats(1)\n");
    page
}

/// The block that the last line belongs to.
#[derive(Default, PartialEq, Eq)]
enum Block {
    #[default]
    None,
    Paragraph,
    Code,
    Item,
    /// The titles of a table, and whether the rows have begun.
    Table(bool),
}

#[derive(Default)]
struct Blocks {
    block: Block,
    /// Lines of a paragraph or item, which are formatted together: code may go over the end of a line.
    text: String,
    /// Whether code was followed by an empty line.
    gap: bool,
}

impl Blocks {
    fn line(&mut self, line: &str, page: &mut String) {
        if let Some(title) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
            self.end(page);
            let kind = if line.starts_with("###") { "SS" } else { "SH" };
            // the name of a file is left as it is
            let title = if title.contains('.') { title.to_owned() } else { title.to_uppercase() };
            page.push_str(&format!(".{kind} {}\n", escaped(&title.replace('`', ""))));
        } else if line.trim().is_empty() {
            // code goes on behind an empty line, if it does
            if self.block == Block::Code {
                self.gap = true;
            } else {
                self.end(page);
            }
        } else if line.starts_with("    ") && matches!(self.block, Block::None | Block::Code) {
            if self.block == Block::None {
                page.push_str(".PP\n.EX\n");
                self.block = Block::Code;
            }
            if std::mem::take(&mut self.gap) {
                page.push_str(".sp\n");
            }
            page.push_str(&format!("{}\n", at_start(escaped(&line[4..]))));
        } else if line.starts_with('|') {
            self.row(line, page);
        } else if let Some(item) = line.strip_prefix("* ") {
            self.end(page);
            page.push_str(".IP \\(bu 2\n");
            (self.block, self.text) = (Block::Item, item.to_owned());
        } else {
            if !matches!(self.block, Block::Paragraph | Block::Item) {
                self.end(page);
                page.push_str(".PP\n");
                self.block = Block::Paragraph;
            }
            self.text.push(' ');
            self.text.push_str(line.trim());
        }
    }

    /// A row of a table becomes a name with its text; the titles, and the line below them, are left out.
    fn row(&mut self, line: &str, page: &mut String) {
        if !matches!(self.block, Block::Table(_)) {
            self.end(page);
            self.block = Block::Table(false);
        }
        if line.starts_with("|--") {
            self.block = Block::Table(true);
        } else if self.block == Block::Table(true) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let (name, texts) = cells.split_first().map_or(("", &[][..]), |(name, texts)| (*name, texts));
            let texts: Vec<&str> = texts.iter().copied().filter(|text| !text.is_empty()).collect();
            page.push_str(&format!(".TP\n{}\n{}\n", formatted(name), formatted(&texts.join("; "))));
        }
    }

    fn end(&mut self, page: &mut String) {
        if self.block == Block::Code {
            page.push_str(".EE\n");
        }
        if !self.text.is_empty() {
            page.push_str(&format!("{}\n", formatted(&self.text)));
        }
        *self = Self::default();
    }
}

/// Formats code, bold text and links within a line.
fn formatted(text: &str) -> String {
    let text = linked(text.trim());
    let mut roff = String::new();
    for (n, part) in text.split('`').enumerate() {
        if n % 2 == 1 {
            roff.push_str(&format!("\\fB{}\\fR", escaped(part)));
            continue;
        }
        for (n, part) in part.split("**").enumerate() {
            let part = escaped(part);
            roff.push_str(&if n % 2 == 1 { format!("\\fB{part}\\fR") } else { part });
        }
    }
    at_start(roff)
}

/// Keeps a line from being a request, which begins with a dot or a quote.
fn at_start(line: String) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

/// Replaces links by their texts.
fn linked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        match after.split_once("](").and_then(|(name, end)| Some((name, end.split_once(')')?.1))) {
            Some((name, end)) if !name.contains(['[', ']']) => {
                out.push_str(before);
                out.push_str(name);
                rest = end;
            }
            _ => {
                out.push_str(before);
                out.push('[');
                rest = after;
            }
        }
    }
    out + rest
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('`', "\\(ga")
        .replace('^', "\\(ha")
        .replace('~', "\\(ti")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_its_requests() {
        let text = "# Title\n\nA [link](to.md) and `code`.\n\n    .indented\n\n    more-code\n\n## `lodN.json`\n\n* one\n  goes on\n* two\n\n\
                    | key | |\n|---|---|\n| `a` | 1 | **b** |\n";
        let page = page("volfs-x", 5, "2026-01-31", "volfs-x - a page", text);
        let body = page.split(".SH DESCRIPTION\n").nth(1).unwrap();
        assert!(
            page.contains(".TH VOLFS-X 5 \"2026-01-31\"") && page.contains(".SH NAME\nvolfs\\-x \\- a page\n"),
            "{page}"
        );
        assert!(
            body.starts_with(".PP\nA link and \\fBcode\\fR.\n.PP\n.EX\n\\&.indented\n.sp\nmore\\-code\n.EE\n"),
            "{body}"
        );
        assert!(
            body.contains(".SH lodN.json\n.IP \\(bu 2\none goes on\n.IP \\(bu 2\ntwo\n.TP\n\\fBa\\fR\n1; \\fBb\\fR\n"),
            "{body}"
        );
    }
}
