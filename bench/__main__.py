"""List the commands and what each measures: `python -m bench`. Their --help says more.

`python -m bench pages` writes the tables of the pages.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path


def main() -> None:
    """Print the first sentence of the help of each command, or write the tables of the pages."""
    if sys.argv[1:2] == ["pages"]:
        from bench import pages

        del sys.argv[1]
        sys.argv[0] = "bench pages"
        pages.main()
    else:
        list_commands()


def list_commands() -> None:
    """Print the first sentence of the help of each command."""
    folder = Path(__file__).parent
    for path in [folder / "pages.py", *sorted(folder.glob("*/*.py"))]:
        text = path.read_text()
        command = path.parent == folder or 'if __name__ == "__main__":' in text
        if command:
            name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
            name = name.removesuffix(".__main__").replace("bench.pages", "bench pages")
            shows = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
            print(f"python -m {name}\n    {' '.join(shows.split())}")


if __name__ == "__main__":
    main()
