#!/usr/bin/env python3
"""How many wrong lines would the tests notice? Changes the source in many small ways, and runs the tests for each.

    scripts/stress/mutants.py WORK [--seed N] [--count N] [--only FOLDER[,FOLDER]] [--more FOLDER[,FOLDER]] [--minutes N]
                              [--suites NAME[,NAME]] [--again RESULTS] [--report]

A mutant is one change: another operator, a function that returns at once, a call that is left out. Which ones are tried
is a random sample of all of them. All mutants of a sample are compiled into one program, which does what the variable
VOLFS_MUTANT says, so that a mutant costs the tests that reach it and no build. Which tests reach it is found first, by
running each test alone. What is found is kept in WORK: the same command goes on where it was stopped, and --report
prints what is known. Lines of the folders of --more are three times as likely. --suites lib builds and runs the
library's tests alone, a quarter of the work: what survives them may be noticed by the others. --again tries those that
survived before, by the results.jsonl of another WORK. Mutants that change nothing that a test could see are in
mutants_accepted.txt, each with the reason: they are not tried again, and not counted. Mutants run in a namespace where
only WORK and what is temporary can be written to.

Needs root, and `pip install tree-sitter tree-sitter-rust`.
"""
import argparse
import collections
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# What is no code of the product on this system, or needs a feature that is not the default.
LEFT_OUT = re.compile(r"(^|/)(tests?|tests/.*|\w+_tests|test_support|fuzz|internals|lib|main|portable|libzfp|no_\w+|mutants)\.rs$|/tests/")
OTHER_OPERATORS = {
    "<": ["<=", ">"], "<=": ["<", ">"], ">": [">=", "<"], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
    "&&": ["||"], "||": ["&&"], "+": ["-", "*"], "-": ["+"], "*": ["+", "/"], "/": ["*", "%"], "%": ["/"],
    "&": ["|"], "|": ["&", "^"], "^": ["|"], "<<": [">>"], ">>": ["<<"],
    "+=": ["-=", "*="], "-=": ["+="], "*=": ["+="], "/=": ["*="], "|=": ["&="], "&=": ["|="], "^=": ["|="], "<<=": [">>="], ">>=": ["<<="],
}
INTEGER = re.compile(r"^([iu](8|16|32|64|128|size)|f32|f64)$")
# The tests of the program and of the library, in the order in which a mutant meets them.
SUITES = ["lib", "api", "cli", "mount"]
MODULE = """\
//! Which mutant is active, and which were reached.
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
static SETTINGS: OnceLock<(usize, Option<std::ffi::OsString>)> = OnceLock::new();

pub(crate) fn is(mutant: usize) -> bool {
    let settings = || {
        let active = std::env::var("VOLFS_MUTANT").ok().and_then(|text| text.parse().ok());
        (active.unwrap_or(usize::MAX), std::env::var_os("VOLFS_MUTANTS_REACHED"))
    };
    let (active, reached) = SETTINGS.get_or_init(settings);
    if let Some(path) = reached && !REACHED[mutant].swap(true, Ordering::Relaxed) {
        if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) {
            let _ = file.write_all(format!("{mutant}\\n").as_bytes());
        }
    }
    *active == mutant
}
"""


def values_of(kind):
    """Returns what a function of this type could return at once."""
    kind = re.sub(r"\s+", " ", kind or "()")
    if kind == "()":
        return ["()"]
    if kind == "bool":
        return ["true", "false"]
    if INTEGER.match(kind):
        return ["0 as _", "1 as _"]
    if kind == "String":
        return ["String::new()", '"xyzzy".into()']
    if kind in ("Self", "!") or "impl " in kind or "dyn " in kind:
        return []
    if match := re.match(r"^(?:io::|fmt::)?Result<?(.*)$", kind):
        return ["Ok(())"] if match[1].startswith("()") or kind == "fmt::Result" else ["Ok(Default::default())"]
    if kind.startswith("Option<"):
        return ["None", "Some(Default::default())"]
    return ["Default::default()"]


def candidates(source, parser):
    """Yields the mutants of a file: line, what it is, and the edits that make it of the source, with {} for its number."""
    text = lambda node: source[node.start_byte:node.end_byte].decode()
    found = []

    def add(node, what, edits):
        found.append((node.start_point[0] + 1, what, edits))

    def visit(node, in_function):
        kind = node.type
        previous, attributes = node.prev_sibling, ""
        while previous is not None and previous.type in ("attribute_item", "line_comment"):
            attributes += text(previous) if previous.type == "attribute_item" else ""
            previous = previous.prev_sibling
        if re.search(r"cfg\(.*(test|shuttle|fuzzing|not\()", attributes):
            return
        if kind in ("const_item", "static_item", "const_block", "array_type", "macro_invocation", "macro_definition", "type_arguments", "attribute_item"):
            return
        if kind == "function_item":
            modifiers = [text(child) for child in node.children if child.type == "function_modifiers"]
            body = node.child_by_field_name("body")
            if any("const" in words.split() for words in modifiers) or body is None:
                return
            result = node.child_by_field_name("return_type")
            name = text(node.child_by_field_name("name"))
            if name not in ("drop", "fmt", "default"):
                for value in values_of(text(result) if result else None):
                    if text(body).strip("{} \n") == value:
                        continue
                    start = body.start_byte + 1
                    add(body, f"{name} returns {value}", [(start, start, f" if crate::mutants::is({{}}) {{{{ return {value}; }}}}")])
            in_function = True
        elif in_function and kind in ("binary_expression", "compound_assignment_expr") and node.start_point[0] == node.end_point[0]:
            left, operator, right = (node.child_by_field_name(field) for field in ("left", "operator", "right"))
            for other in OTHER_OPERATORS.get(text(operator), []):
                # of two flags of different bits it is the same
                if other == "^" and left.type == right.type == "scoped_identifier":
                    continue
                changed = f"{text(left)} {other} {text(right)}"
                whole = text(node)
                braces = lambda words: words.replace("{", "{{").replace("}", "}}")
                opening, closing = ("(", ")") if kind == "binary_expression" else ("", "")
                replacement = f"{opening}if crate::mutants::is({{}}) {{{{ {braces(changed)} }}}} else {{{{ {braces(whole)} }}}}{closing}"
                add(node, f"{whole} becomes {changed}", [(node.start_byte, node.end_byte, replacement)])
        elif in_function and kind == "unary_expression" and text(node)[0] in "!-" and node.start_point[0] == node.end_point[0]:
            inner = text(node)[1:]
            braces = inner.replace("{", "{{").replace("}", "}}")
            sign = text(node)[0]
            if not inner[:1].isdigit():
                replacement = f"(if crate::mutants::is({{}}) {{{{ {braces} }}}} else {{{{ {sign}{braces} }}}})"
                add(node, f"{text(node)} becomes {inner}", [(node.start_byte, node.end_byte, replacement)])
        elif in_function and kind == "expression_statement" and text(node).endswith(";"):
            call = node.children[0]
            if call.type in ("call_expression", "try_expression"):
                add(node, f"without {text(call).splitlines()[0]}",
                    [(node.start_byte, node.start_byte, "if !crate::mutants::is({}) {{ "), (node.end_byte, node.end_byte, " }}")])
        elif in_function and kind == "match_pattern":
            guard = node.child_by_field_name("condition")
            if guard is not None and guard.type not in ("let_chain", "let_condition"):
                add(guard, f"guard {text(guard)} is true",
                    [(guard.start_byte, guard.start_byte, "(crate::mutants::is({}) || ("), (guard.end_byte, guard.end_byte, "))")])
        for child in node.children:
            visit(child, in_function)

    visit(parser.parse(source).root_node, False)
    return found


def accepted():
    """Returns the files and mutants of mutants_accepted.txt: a file, below it what is changed, below that the reason."""
    found, file, what = set(), None, None
    for line in (Path(__file__).parent / "mutants_accepted.txt").read_text().splitlines():
        if line.startswith(" " * 4) and not line.startswith(" " * 8):
            what = line.strip()
        elif line.startswith(" " * 8):
            found.add((file, what))
        elif not line.startswith("#"):
            file = line
    return found


def sample(tree, only, more, count, seed, again=None):
    """Returns mutants of the files of a checkout, one a line at most, at random; only those in `again`, if it is given."""
    import tree_sitter
    import tree_sitter_rust

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
    folder = lambda name: name.split("/")[1].removesuffix(".rs")
    lines, left_out = collections.defaultdict(list), accepted()
    for path in sorted((tree / "src").rglob("*.rs")):
        name = str(path.relative_to(tree))
        if LEFT_OUT.search(name) or (only and folder(name) not in only):
            continue
        for line, what, edits in candidates(path.read_bytes(), parser):
            if (name, what) not in left_out and (again is None or (name, what) in again):
                lines[name, line].append((what, edits))
    rng = random.Random(seed)
    places = sorted(lines)
    total = sum(map(len, lines.values()))
    # a line with many mutants is as likely as one with one: lines are what is asked about
    chance = {place: rng.random() ** (1 / (3 if folder(place[0]) in more else 1)) for place in places}
    chosen = sorted(sorted(places, key=chance.get)[-count:])
    mutants = []
    for number, place in enumerate(chosen):
        what, edits = rng.choice(lines[place])
        mutants.append({"number": number, "file": place[0], "line": place[1], "what": what, "edits": edits})
    print(f"{total} mutants in {len(places)} lines, of which {len(mutants)} are tried (seed {seed})", flush=True)
    return mutants


def overlapping(mutants):
    """Returns the numbers of mutants whose edits lie within those of others."""
    dropped = set()
    by_file = collections.defaultdict(list)
    for mutant in mutants:
        for start, end, _ in mutant["edits"]:
            by_file[mutant["file"]].append((start, end, mutant["number"]))
    for edits in by_file.values():
        edits.sort()
        for (_, end, one), (start, _, other) in zip(edits, edits[1:]):
            if start < end and one != other:
                dropped.add(other)
    return dropped


def write(tree, mutants):
    """Writes the source with all mutants in it."""
    by_file = collections.defaultdict(list)
    for mutant in mutants:
        for start, end, words in mutant["edits"]:
            by_file[mutant["file"]].append((start, end, words.format(mutant["number"])))
    for path in sorted((tree / "src").rglob("*.rs")):
        name = str(path.relative_to(tree))
        text = (ROOT / name).read_bytes() if (ROOT / name).exists() else None
        if text is None:
            continue
        for start, end, words in sorted(by_file.get(name, []), reverse=True):
            text = text[:start] + words.encode() + text[end:]
        if path.read_bytes() != text:
            path.write_bytes(text)
    module = tree / "src" / "mutants.rs"
    text = MODULE.replace("COUNT", str(max((m["number"] for m in mutants), default=0) + 1))
    if not module.exists() or module.read_text() != text:
        module.write_text(text)
    # only the module's own line is new, at the end: lines keep their numbers
    library = tree / "src" / "lib.rs"
    library.write_text((ROOT / "src" / "lib.rs").read_text() + "#[doc(hidden)]\nmod mutants;\n")


def cargo(tree, arguments):
    environment = os.environ | {"CARGO_TARGET_DIR": str(tree.parent / "target")}
    done = subprocess.run(["cargo", *arguments, "--message-format=json"], cwd=tree, env=environment, stdout=subprocess.PIPE)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return done.returncode, messages


def spans(message):
    yield from message.get("spans", [])
    for child in message.get("children", []):
        yield from spans(child)


def build(tree, mutants, suites):
    """Builds the tests, without the mutants that do not compile. Returns the mutants left, and the tests' programs."""
    dropped = overlapping(mutants)
    left = [mutant for mutant in mutants if mutant["number"] not in dropped]
    while True:
        write(tree, left)
        status, messages = cargo(tree, ["check", "--lib"])
        if status == 0:
            break
        at = {(mutant["file"], mutant["line"]): mutant["number"] for mutant in left}
        wrong = set()
        for message in messages:
            message = message.get("message") or {}
            if not isinstance(message, dict) or message.get("level") != "error":
                continue
            lines = [(span["file_name"], line) for span in spans(message)
                     for line in range(span["line_start"], span["line_end"] + 1) if span["line_end"] - span["line_start"] < 40]
            found = {at[place] for place in lines if place in at}
            if not found and message.get("spans"):
                print(message.get("rendered"), flush=True)
            wrong |= found
        if not wrong:
            sys.exit("the source with the mutants does not compile, and no mutant is at fault")
        left = [mutant for mutant in left if mutant["number"] not in wrong]
        print(f"{len(wrong)} mutants do not compile, {len(left)} are left", flush=True)
    chosen = [option for suite in suites for option in (["--lib"] if suite == "lib" else ["--test", suite])]
    status, messages = cargo(tree, ["test", "--no-run", *chosen])
    if status != 0:
        sys.exit("the tests do not compile")
    programs = {}
    for message in messages:
        if message.get("executable") and message.get("profile", {}).get("test"):
            name = "lib" if "lib" in message["target"]["kind"] else message["target"]["name"]
            programs[name] = message["executable"]
    return left, {name: programs[name] for name in suites}


def run(program, arguments, tree, seconds, **variables):
    """Runs tests in a process group of its own, and returns whether they passed: None if they took too long."""
    def limits():
        os.setsid()
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_DATA, (12 << 30, 12 << 30))

    environment = os.environ | {"CARGO_MANIFEST_DIR": str(tree)} | variables
    process = subprocess.Popen([program, *arguments], cwd=tree, env=environment, preexec_fn=limits,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        clean_up()


def clean_up():
    """Ends what a test left behind: its mounts, and daemons of sessions of their own."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - fuse" in line and (target := line.split()[4]).startswith(os.environ.get("TMPDIR", "/tmp")):
            subprocess.run(["umount", "--lazy", target], stderr=subprocess.DEVNULL)
    me = os.getpid()
    for entry in Path("/proc").iterdir():
        # this process is the first of its namespace
        if entry.name.isdigit() and int(entry.name) not in (1, me):
            try:
                os.kill(int(entry.name), signal.SIGKILL)
            except ProcessLookupError:
                pass
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break


def reach(work, tree, programs, end):
    """Runs each test alone. Returns, for each, its seconds and the mutants that it reaches; None where the time is over."""
    known = work / "tests.jsonl"
    tests = {}
    if known.exists():
        for line in known.read_text().splitlines():
            test = json.loads(line)
            tests[test["suite"], test["name"]] = test
    with known.open("a") as out:
        for suite, program in programs.items():
            listed = subprocess.run([program, "--list"], cwd=tree, stdout=subprocess.PIPE, text=True, check=True).stdout
            names = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
            for name in names:
                if (suite, name) in tests:
                    continue
                if time.monotonic() > end:
                    return None
                reached = work / "tmp" / "reached"
                reached.unlink(missing_ok=True)
                start = time.monotonic()
                passed = run(program, ["--exact", name], tree, 300, VOLFS_MUTANTS_REACHED=str(reached))
                test = {"suite": suite, "name": name, "seconds": round(time.monotonic() - start, 2), "passed": passed,
                        "reached": sorted({int(line) for line in reached.read_text().split()} if reached.exists() else [])}
                if not passed:
                    print(f"does not pass alone, and is left out: {suite} {name}", flush=True)
                tests[suite, name] = test
                out.write(json.dumps(test) + "\n")
                out.flush()
            print(f"{suite}: {len(names)} tests", flush=True)
    return [test for test in tests.values() if test["passed"]]


def judge(mutant, tests, programs, tree):
    """Runs the tests that reach a mutant, the quickest first, until one fails. Returns what was found."""
    reaching = [test for test in tests if mutant["number"] in test["reached"]]
    if not reaching:
        return {"outcome": "not reached"}
    # those of the same part of the source are the likeliest to notice
    folder = mutant["file"].split("/")[1].removesuffix(".rs")
    reaching.sort(key=lambda test: (SUITES.index(test["suite"]), not test["name"].startswith(folder), test["seconds"]))
    for suite in SUITES:
        mine = [test for test in reaching if test["suite"] == suite]
        size = 8
        while mine:
            batch, mine = mine[:size], mine[size:]
            seconds = 20 + 4 * sum(test["seconds"] for test in batch)
            names = [test["name"] for test in batch]
            passed = run(programs[suite], ["--exact", *names], tree, seconds, VOLFS_MUTANT=str(mutant["number"]))
            if passed is not True:
                return {"outcome": "caught" if passed is False else "caught by time", "by": suite}
            size *= 4
    return {"outcome": "survived", "tests": len(reaching)}


def report(results):
    """Prints the share of caught mutants by folder, and those that were not."""
    known = accepted()
    left_out = sum((result["file"], result["what"]) in known for result in results)
    results = [result for result in results if (result["file"], result["what"]) not in known]
    folders = collections.defaultdict(collections.Counter)
    for result in results:
        folders[result["file"].split("/")[1].removesuffix(".rs")][result["outcome"].split()[0]] += 1
    total = collections.Counter()
    for folder, counts in sorted(folders.items()):
        total.update(counts)
        tried = sum(counts.values())
        print(f"{folder:12} {counts['caught']:4} of {tried:4} caught ({counts['caught'] / tried:.1%})")
    tried = sum(total.values())
    print(f"{'all':12} {total['caught']:4} of {tried:4} caught ({total['caught'] / max(tried, 1):.1%}), {left_out} accepted\n")
    for result in results:
        if not result["outcome"].startswith("caught"):
            print(f"{result['file']}:{result['line']}: {result['what']} ({result['outcome']})")


def isolate(arguments):
    """Runs this script again where only the folder WORK and what is temporary can be written to."""
    # this script, too, may lie where it is not seen any more
    script = shutil.copy2(__file__, arguments.work / "mutants.py")
    shutil.copy2(Path(__file__).with_name("mutants_accepted.txt"), arguments.work)
    setup = """
        mount --make-rprivate / && mount --bind "$1" "$1" && mount -o remount,bind,ro / && mount --bind "$1/tmp" /tmp &&
        mount -t tmpfs tmpfs /run && shift && exec "$@"
    """
    os.execvp("unshare", ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", setup, "mutants",
                          str(arguments.work), "env", "VOLFS_MUTANTS_ISOLATED=1", f"TMPDIR={arguments.work}/tmp", sys.executable, script, *sys.argv[1:]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=lambda path: Path(path).resolve())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", type=lambda names: names.split(","))
    parser.add_argument("--more", type=lambda names: names.split(","), default=[])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--suites", type=lambda names: names.split(","), default=SUITES)
    parser.add_argument("--again", type=Path)
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    if Path("/tmp") in arguments.work.parents:
        parser.error("WORK must not lie in /tmp: mutants have another one")
    work, tree = arguments.work, arguments.work / "tree"
    results = work / "results.jsonl"
    read = lambda: [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    if arguments.report:
        return report(read())
    (work / "tmp").mkdir(parents=True, exist_ok=True)
    built = work / "built.json"
    if not built.exists():
        if tree.exists():
            shutil.rmtree(tree)
        tree.mkdir()
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
        for name in files.split("\0")[:-1]:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
        again = None
        if arguments.again:
            before = map(json.loads, arguments.again.read_text().splitlines())
            again = {(one["file"], one["what"]) for one in before if not one["outcome"].startswith("caught")}
        sampled = sample(tree, arguments.only, arguments.more, arguments.count, arguments.seed, again)
        mutants, programs = build(tree, sampled, arguments.suites)
        built.write_text(json.dumps({"mutants": mutants, "programs": programs}))
    if "VOLFS_MUTANTS_ISOLATED" not in os.environ:
        isolate(arguments)
    state = json.loads(built.read_text())
    end = time.monotonic() + arguments.minutes * 60
    tests = reach(work, tree, state["programs"], end)
    if tests is None:
        return print("stopped: the time is over")
    known = {result["number"] for result in read()}
    # those that are known when it is stopped are a sample, too
    random.Random(arguments.seed).shuffle(state["mutants"])
    with results.open("a") as out:
        for mutant in state["mutants"]:
            if mutant["number"] in known:
                continue
            if time.monotonic() > end:
                print("stopped: the time is over")
                break
            found = judge(mutant, tests, state["programs"], tree)
            del mutant["edits"]
            out.write(json.dumps(mutant | found) + "\n")
            out.flush()
            print(f"{mutant['file']}:{mutant['line']}: {mutant['what']}: {found['outcome']}", flush=True)
    report(read())


if __name__ == "__main__":
    main()
