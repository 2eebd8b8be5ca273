"""Check the prose of a project: `python tools/prose_lint.py PATH...`.

Reads Python, Cython, C and Markdown files. Prints `file:line: rule: text` for each fault, and exits
with 1 if there is one.

summary   a docstring of a function starts with an imperative verb, and its first sentence fits
          a line (tests excepted)
length    a sentence has at most 30 words
nouns     no demonstrative stands for a noun ("those that", "of these", "the others", "of which")
heads     a sentence has at most four of: that which it one those these what others
message   the text of an error or warning ends with a period, has at most 45 words and no " == "
names     no variable called found, some, few, more, each, given, others or those beyond five lines
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

MOST_WORDS, MOST_HEADS, SHORT, MOST_MESSAGE = 30, 4, 5, 45
HEADS = {"that", "those", "these", "what", "others", "one", "it", "which"}
NAMES = {"found", "some", "few", "more", "each", "given", "others", "those"}
# First words of a summary. Add a verb here only if it says what a function does.
_VERBS = """
Accept Accumulate Add Adjust Advance Align Allocate Allow Anneal Append Apply Approximate Assemble
Assign Average Begin Bind Block Bound Broadcast Build Calibrate Call Cast Catch Center Chain Check
Choose Clear Clip Close Cluster Collect Combine Compare Complete Compress Compute Concatenate
Connect Construct Convert Copy Correct Count Create Cut Decide Decode Decompose Define Delay Delete
Describe Detect Determine Discard Dispatch Distribute Divide Draw Drop Embed Emit Empty Encode End
Enter Estimate Evaluate Examine Exchange Exit Expand Explain Export Extend Extract Factor Fetch
Fill Filter Find Finish Fit Flatten Fold Follow Forget Format Fuse Gather Generate Get Give Group
Guess Guard Handle Hash Hide Hold Identify Ignore Import Improve Include Increase Initialize Insert
Install Interpolate Invert Iterate Join Judge Keep Label Learn Leave Limit List Load Locate Log
Look Lower Make Map Mark Mask Match Maximise Measure Merge Minimise Mix Move Multiply Name
Normalise Note Number Obtain Open Optimise Order Orthonormalise Pack Parse Partition Pass Perform
Pick Plan Plot Predict Prefer Prepare Prevent Print Produce Project Propose Prove Prune Publish Put
Raise Rank Read Rebuild Receive Recompute Record Recover Reduce Refer Refuse Register Relabel
Release Relocate Remember Remove Repair Repeat Replace Report Represent Request Rescale Reset
Reshape Resolve Restore Restrict Resume Return Reverse Reweight Rotate Round Run Sample Save Scale
Score Search See Seed Select Send Separate Set Settle Share Shift Show Shrink Sign Skip Solve Sort
Split Spread Square Stack Standardise Start State Step Stop Store Stream Subtract Suggest Sum
Suppress Swap Symmetrise Take Test Tie Time Trace Track Train Transform Translate Trim Try Tune
Turn Unite Unpack Update Use Validate Verify Visit Wait Walk Warn Watch Weigh Weight Whiten Widen
Wrap Write Yield Zero
"""
VERBS = {*_VERBS.split()}
_ISE = {v.replace("ise", "ize") for v in VERBS if v.endswith("ise")}
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|cf|et al|vs|eq|eqs|sec|fig|no|Proc|Conf|Trans|Inf|Lett|J|Stat|Res)\.", re.I
)
_SKIPPED = re.compile(
    r"``[^`]*``|`[^`]*`|\([^()]*\d{4}[^()]*\)|https?://\S+|\[\d+\]_?|\"[^\"]*\"|'[^'\s]*'"
)
_SENTENCE = re.compile(r"(?<=[A-Za-z\d)\]%][.!?:;])\s+(?=[A-Z`\"(])|\n\s*\n")
# A pronoun for a noun: before a verb, a preposition, a relative pronoun or the end of a clause.
_NOUN = re.compile(
    r"\b(?:those|these|(?:the |all |many |few |some )?others|the same|the ones?"
    r"|(?:of|in|to|by|with) which)\b"
    r"(?=\s*(?:[,.;:)]|$)|\s+(?:of|that|which|whose|who|is|are|was|were|has|have|had|can|may|must"
    r"|do|does|in|by|to|from|with|for|at|on|as|before|after|and|or|a|an|the|it|they|users?|not)\b)",
    re.I,
)
# Texts that scikit-learn's own checks expect.
_STANDARD = re.compile(
    r"^(?:Expected|Found|Input|Unknown|Complex|Reshape|could not|X has|The feature names|Number of)"
)
_WORD = re.compile(r"[A-Za-z][a-z'-]*[a-z]|[aI]")  # a symbol such as sum_i or n is no word
# "one" as a number, and "so that": no pronouns
_NO_HEAD = re.compile(
    r"\b(?:so|such|now|except) that\b"
    r"|\b(?:length|sum|norm|variance|weight|mean|at least|at most|exponent|from|to|than) one\b"
    r"|\bone (?:of|or|after|another|by|array|view|row|pass|cluster|table|column|dimension|line"
    r"|more|thread|file|value|number|call|block|dtype|reading|side|dense|start|step|estimator"
    r"|class|kernel|word|sentence|matrix|centroid|map|at)\b",
    re.I,
)
_SECTION = re.compile(r"^[A-Z][A-Za-z ]+$")
_RAISERS = {"warn", "Advice"}
_SILENT = {"AssertionError", "NotImplementedError", "KeyError", "StopIteration"}
_C_COMMENT = re.compile(r"/\*(.*?)\*/|//([^\n]*)", re.S)

_WRITTEN = {"auto_gallery", "generated"}  # folders that the build of the pages writes


def sentences(text: str) -> Iterator[str]:
    """Split prose into sentences, without code, quotations and citations."""
    text = _ABBREVIATION.sub(lambda m: m.group().replace(".", "·"), text)
    for part in _SENTENCE.split(_SKIPPED.sub("X", text)):
        if part and len(_WORD.findall(part)) > 2:
            yield " ".join(part.split())


def prose(docstring: str) -> Iterator[tuple[int, str]]:
    """Yield paragraphs of a docstring with their first line; skip tables and examples."""
    lines, block, begin = docstring.split("\n"), list[str](), 0
    for number, line in enumerate([*lines, ""]):
        bare = line.strip()
        over = not bare or set(bare) <= set("-=") or bool(_SECTION.match(bare))
        over = over or "  " in bare  # a table
        over = over or bare.startswith((">>>", "...", "|", ".. "))  # an example or a table
        field = re.match(r"^[\w*, ]+ : ", bare)
        if over or field:
            if block:
                yield begin, "\n".join(block)
            block = []
        elif not bare.startswith(">>>"):
            begin = begin if block else number
            block.append(bare)


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield comments; consecutive lines without code are one comment."""
    block, begin, last = list[str](), 0, -2
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        text, line = token.string.lstrip("#: ").rstrip(), token.start[0]
        directive = re.match(r"(fmt|type|noqa|pragma|mypy|ruff|-{4,}|={4,})", text)
        if directive or set(text) <= set("-= "):
            continue
        alone = not token.line[: token.start[1]].strip()  # a comment after code is one of its own
        if block and (line != last + 1 or not alone):
            yield begin, " ".join(block)
            block = []
        begin, last = (begin if block else line), line if alone else -2
        block.append(re.sub(r"\s*-{4,}$|^-{3,}\s*", "", text))
    if block:
        yield begin, " ".join(block)


def faults_of_sentence(sentence: str) -> Iterator[tuple[str, str]]:
    """Judge one sentence by its words."""
    tokens = (token.strip(".,:;!?()[]*'") for token in sentence.split())
    words = [token for token in tokens if _WORD.fullmatch(token)]
    if len(words) > MOST_WORDS:
        yield "length", f"{len(words)} words: {sentence}"
    candidates = re.findall(r"[A-Za-z]+", _NO_HEAD.sub(" ", sentence))
    heads = sum(word.lower() in HEADS for word in candidates)
    if heads > MOST_HEADS:
        yield "heads", f"{heads} pronouns: {sentence}"
    if not sentence.rstrip().endswith("?") and (match := _NOUN.search(sentence)):
        yield "nouns", f"'{match.group()}' for a noun: {sentence}"


def summary_fault(node: ast.AST, text: str) -> str | None:
    """Judge the first line of a docstring; classes and modules may start with a noun."""
    first = text.strip().split("\n")[0].strip()
    if not first or isinstance(node, (ast.Module, ast.ClassDef)):
        is_name = "-" in first.split()[0] if first else True  # of a package, such as scikit-learn
        begins = is_name or first[0].isupper() or first[0] in "`'\""
        return None if begins else f"no capital: {first}"
    if any("property" in ast.unparse(d) for d in node.decorator_list):  # type: ignore[attr-defined]
        return None  # a property is a noun
    if node.name.startswith("test_"):  # type: ignore[attr-defined]
        return None  # a test states what holds
    word = first.split()[0].rstrip(".,:;")
    if word not in VERBS and word not in _ISE:
        return f"no imperative verb: {first}"
    if not re.search(r"[.:](?:\s|$)", _ABBREVIATION.sub("", first)):
        return f"more than a line: {first}"
    return None


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the texts of errors that are raised, of warnings, and of rules of advice."""
    named = [node for node in tree.body if isinstance(node, ast.Assign)]
    constants = {ast.unparse(node.targets[0]): template(node.value, {}) for node in named}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in _RAISERS or (name.endswith("Error") and name not in _SILENT):
            text = template(node.args[-1 if name == "Advice" else 0], constants)
            if " " in text:
                yield node.lineno, text


def template(node: ast.expr, constants: dict[str, str]) -> str:
    """Return the text of a string, an f-string or a sum, with {x} for what is filled in."""
    if isinstance(node, ast.BinOp):
        return template(node.left, constants) + template(node.right, constants)
    if isinstance(node, ast.Name):
        return constants.get(node.id, "")
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return "".join(str(p.value) if isinstance(p, ast.Constant) else "{x}" for p in parts)


def bad_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield variables with vague names that are used more than a few lines after they are bound."""
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        own = [n for n in walk_own(function) if isinstance(n, (ast.Name, ast.arg))]
        for name in NAMES:
            same = [n for n in own if getattr(n, "id", getattr(n, "arg", "")) == name]
            lines = [n.lineno for n in same]
            bound = any(isinstance(getattr(n, "ctx", ast.Store()), ast.Store) for n in same)
            if bound and max(lines) - min(lines) > SHORT:
                yield (
                    min(lines),
                    f"{name} lives {max(lines) - min(lines) + 1} lines in {function.name}",
                )


def walk_own(function: ast.AST) -> Iterator[ast.AST]:
    """Walk the nodes of a function, but not into functions inside."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from walk_own(node)


def markdown(source: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a Markdown file with their first line."""
    fenced, block, begin = False, list[str](), 0
    for number, line in enumerate([*source.split("\n"), ""], 1):
        bare = line.strip()
        if bare.startswith("```"):
            fenced = not fenced
        skipped = fenced or not bare or bare.startswith(("```", "|", "#", "$$", "<", "!["))
        starts = re.match(r"(?:[-*]|\d+\.) ", bare)
        if (skipped or starts) and block:
            yield begin, "\n".join(block)
            block = []
        if not skipped:
            begin = begin if block else number
            block.append(re.sub(r"^(?:[-*]|\d+\.) |\*\*|\]\([^)]*\)|\[", "", bare))


def c_comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a C file with their first line."""
    for match in _C_COMMENT.finditer(source):
        text = re.sub(r"\n\s*\*?\s*", " ", match.group(1) or match.group(2) or "")
        yield source[: match.start()].count("\n") + 1, text.strip()


def cython_comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a Cython file with their first line."""
    block, begin = list[str](), 0
    for number, line in enumerate([*source.split("\n"), ""], 1):
        bare = line.strip()
        if bare.startswith("#"):
            begin = begin if block else number
            block.append(bare.lstrip("# "))
        elif block:
            yield begin, " ".join(block)
            block = []


READERS = {
    ".md": markdown, ".c": c_comments, ".h": c_comments, ".pyx": cython_comments,
    ".pxd": cython_comments,
}  # fmt: skip


def faults(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield all faults of a file: line, rule, text."""
    source = path.read_text()
    if path.suffix == ".py":
        yield from faults_of_code(ast.parse(source))
        texts = comments(source)
    else:
        texts = READERS[path.suffix](source)
    for line, text in texts:
        for sentence in sentences(text):
            for rule, fault in faults_of_sentence(sentence):
                yield line, rule, fault


def faults_of_code(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield the faults of docstrings, messages and names."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node)
        if docstring is None:
            continue
        line = node.body[0].lineno
        if summary := summary_fault(node, docstring):
            yield line, "summary", summary
        for offset, paragraph in prose(docstring):
            for sentence in sentences(paragraph):
                for rule, fault in faults_of_sentence(sentence):
                    yield line + offset, rule, fault
    for line, text in messages(tree):
        ends = text.rstrip().endswith((".", "?", "{x}"))
        bad = " == " in text or not ends or len(text.split()) > MOST_MESSAGE
        if bad and not _STANDARD.match(text):
            yield line, "message", text
    for line, text in bad_names(tree):
        yield line, "names", text


def main(arguments: list[str]) -> int:
    """Print the faults of all files; return 1 if there are any."""
    kinds = {".py", *READERS}
    roots = [Path(argument) for argument in arguments]
    files = [file for root in roots for file in (root.rglob("*") if root.is_dir() else [root])]
    paths = {file for file in files if file.suffix in kinds and not _WRITTEN & {*file.parts}}
    lines = [
        f"{path}:{line}: {rule}: {text}"
        for path in sorted(paths)
        for line, rule, text in sorted(faults(path))
    ]
    print(*lines, sep="\n", end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
