#!/usr/bin/python3
"""The manual pages and the shells' completion: well-formed, and complete with respect to framed's own output."""
import glob
import os
import re
import subprocess

from framed_client import BENCH, BINARY, ROOT, Checks, run

PAGES = os.path.join(os.path.dirname(BINARY), "man")
COMPLETION = os.path.join(ROOT, "scripts", "completion")
# Sizes in bytes of the layouts in framed-wire(7).
LAYOUTS = [256, 128, 320, 256, 272, 16]
BASH = """
source {folder}/framed.bash
compopt() {{ :; }}
COMP_WORDS=({words}) COMP_CWORD={at}
_framed
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# Prints the proposals that zsh's own functions would show.
ZSH = """
_describe() {{ print -rl -- ${{(P)2}} }}
compadd() {{ print -rl -- ${{@:#--}} }}
_files() {{ print -l *(N) }}
_framed() {{
{script}
}}
words=({words}) CURRENT={at}
_framed
"""


def page(name):
    """Returns a page's text, with each run of blanks as one, and with words rejoined that were broken at a hyphen."""
    done = subprocess.run(["mandoc", "-T", "utf8", f"{PAGES}/{name}"], capture_output=True, text=True, check=True)
    text = re.sub(".\b", "", done.stdout).replace("‐", "-")
    return re.sub(r"[ \n]+", " ", re.sub(r"(?<=\w-)\n\s+(?=\w)", "", text))


def words_of(text):
    """Returns text in the form of page(): without Markdown's quotes, and with single blanks instead of line breaks."""
    return " ".join(text.replace("`", "").replace("\\|", "|").split())


def helps():
    """Returns the option lines of each command's help."""
    commands = re.findall(r"^  ([a-z]+) ", run("--help")[1], re.M)
    return {name: re.findall(r"^  (-.*)$", run(name, "--help")[1], re.M) for name in commands}


def check_form(checks):
    paths = sorted(glob.glob(f"{PAGES}/*"))
    checks.check(len(paths) == len(glob.glob(f"{ROOT}/scripts/man/*")), f"pages: {paths}")
    for path in paths:
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], capture_output=True, text=True)
        said = [line for line in done.stdout.splitlines() if "missing date" not in line]
        checks.check(not said, "\n".join(said))
        with open(path) as file:
            checks.check(not re.search(r"@\w+@", file.read()), f"{path}: a placeholder is left")
        with open(f"{ROOT}/scripts/man/{os.path.basename(path)}.md") as file:
            words = set(re.findall(r"\w+(?:_\w+)+", re.sub(r"@\w+@", "", file.read()).replace(r"\_", "_")))
        lost = [word for word in words if word not in page(os.path.basename(path))]
        checks.check(not lost, f"{path}: Markdown took the underscores of {lost} for emphasis")


def check_commands(checks):
    shown = page("framed.1")
    for line in [*run("--help")[1].splitlines(), *run("cluster", "--help")[1].splitlines()]:
        if match := re.match(r"  (-?\S.*?)  +(.*)$", line):
            checks.check(words_of(" ".join(match.groups())) in shown, f"framed(1) lacks {line}")
    for command, lines in helps().items():
        section = shown.partition(" OPTIONS ")[2].partition(f" framed {command} ")[2]
        for line in lines:
            checks.check(words_of(line) in section, f"framed(1) lacks {line} of {command}")
    shown = page("framed-bench.1")
    lines = re.findall(r"^  (-.*)$", run("--help", program=BENCH)[1], re.M)
    checks.check(len(lines) > 10, f"options of framed-bench: {lines}")
    for line in lines:
        checks.check(words_of(line) in shown, f"framed-bench(1) lacks {line}")
    shown = page("framed.1")
    with open(f"{ROOT}/daemon/base/process.h") as header:
        codes = re.findall(r"EXIT_\w+ = (\d+)", header.read())
    checks.check(len(codes) == 5, f"exit codes: {codes}")
    section = shown.partition(" EXIT STATUS ")[2].partition(" ENVIRONMENT ")[0]
    for code in codes:
        checks.check(re.search(rf" {code} [a-z]", section), f"framed(1) lacks the exit code {code}")


def check_metrics(checks):
    names = []
    for path in glob.glob(f"{ROOT}/daemon/service/metrics*.c"):
        with open(path) as file:
            names += re.findall(r'\w+\(to,\s*"(framed_\w+)"', file.read())
    checks.check(len(names) > 40 and "framed_cluster_alone_seconds" in names, f"metrics: {names}")
    section = page("framed.1").partition(" METRICS ")[2].partition(" EXIT STATUS ")[0]
    for name in names:
        checks.check(re.search(rf" {name}[ {{,.]", section), f"framed(1) lacks {name}")


def check_keys(checks):
    shown = page("framed.yaml.5")
    rows = [line for line in run("keys")[1].splitlines() if line.startswith("| `")]
    checks.check(len(rows) > 40, f"{len(rows)} keys")
    for row in rows:
        key, value, default, meaning = (words_of(cell) for cell in re.split(r"(?<!\\)\|", row)[1:-1])
        default = f" Default: {default}." if "`" in row.split("|")[-3] else " Required." if default else ""
        checks.check(f" {key} {meaning}.{default} Value: {value}." in shown, f"framed.yaml(5) lacks {row}")


def check_wire(checks):
    """The layouts leave no hole, and end where the structs do; fields lie at the offsets that clients use."""
    row = re.compile(r"^T{\n(\d+)\nT}\|T{\n(\w+)(?:\[(\d+)\])?\nT}\|T{\n\\fB(\w+)\\fR\n", re.M)
    with open(f"{PAGES}/framed-wire.7") as file:
        tables = [rows for text in file.read().split(".TS")[1:] if (rows := row.findall(text))]
    size = {"char": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "i64": 8, "f32": 4}
    for rows, end in zip(tables, LAYOUTS, strict=True):
        place = int(rows[0][0])
        for offset, kind, count, name in rows:
            checks.check(int(offset) == place, f"{name} at {offset}, not {place}")
            place += size[kind] * int(count or 1)
        checks.check(place == end, f"a layout ends at {place}, not {end}")
    rule = "dst_to_src * (p - 1/2) + 1/2 in the source"
    checks.check(rule in page("framed-wire.7"), "framed-wire(7) does not say how a box's corner is mapped")
    header = {name: int(offset) for offset, _, _, name in tables[0]}
    looked_up = {"payload_bytes": 8, "width": 80, "dst_to_src": 192, "camera": 216}
    checks.check(looked_up.items() <= header.items(), f"framed-wire(7): {header}")


def shell(arguments, script):
    environment = {**os.environ, "PATH": f"{os.path.dirname(BINARY)}:{os.environ['PATH']}"}
    done = subprocess.run([*arguments, script], capture_output=True, text=True, env=environment, cwd=COMPLETION)
    return set(done.stdout.splitlines()) if not done.stderr else {done.stderr}


def complete(words, at):
    """Returns the proposals of bash and of zsh for the word with that number."""
    with open(f"{COMPLETION}/_framed") as file:
        zsh = ZSH.format(script=file.read(), words=words, at=at + 1)
    bash = BASH.format(folder=COMPLETION, words=words, at=at)
    return shell(["bash", "--norc", "-c"], bash), shell(["zsh", "-fc"], zsh)


def check_completion(checks):
    listed = run("--help")[1]
    commands = set(re.findall(r"^  ([a-z]+) ", listed, re.M))
    bash, zsh = complete("framed ''", 1)
    checks.check(bash == commands | {"--help", "--version"}, f"bash: commands {bash}")
    checks.check({line.split(":")[0] for line in zsh} == commands, f"zsh: commands {zsh}")
    of_all = helps()
    checks.check(of_all.keys() == commands and "--probe" in " ".join(of_all["check"]), f"options: {of_all}")
    for command, lines in of_all.items():
        expected = {option for line in lines for option in re.findall(r"^-\w(?=, )|(?:^|(?<=, ))--[\w-]+", line)} or {""}
        for name, proposed in zip(("bash", "zsh"), complete(f"framed {command} -", 2)):
            checks.check((proposed or {""}) == expected, f"{name}: framed {command} -: {proposed}, not {expected}")
    commands = set(re.findall(r"^  ([a-z]+) ", run("cluster", "--help")[1], re.M))
    bash, zsh = complete("framed cluster ''", 2)
    checks.check({"apply", "drain"} <= commands and bash == commands, f"bash: framed cluster {bash}, not {commands}")
    checks.check({line.split(":")[0] for line in zsh} == commands, f"zsh: framed cluster {zsh}")
    options = set(re.findall(r"^  (--[\w-]+)", run("--help", program=BENCH)[1], re.M))
    for at, words in ((1, "framed-bench -"), (3, "framed-bench --clip x -")):
        for name, proposed in zip(("bash", "zsh"), complete(words, at)):
            checks.check(proposed == options, f"{name}: {words}: {proposed}, not {options}")
    for name, proposed in zip(("bash", "zsh"), complete("framed-bench --clip ''", 2)):
        checks.check("framed.bash" in proposed, f"{name}: files of framed-bench {proposed}")
    for name, proposed in zip(("bash", "zsh"), complete("framed check -c ''", 3)):
        checks.check("framed.bash" in proposed, f"{name}: files {proposed}")


def main():
    checks = Checks("manual")
    check_form(checks)
    check_commands(checks)
    check_keys(checks)
    check_metrics(checks)
    check_wire(checks)
    check_completion(checks)
    checks.end()


main()
