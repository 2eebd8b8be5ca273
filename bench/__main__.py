"""List the commands and what each measures: `python -m bench`. Their --help says more."""

from __future__ import annotations

import ast
from pathlib import Path


def main() -> None:
    """Print the first sentence of the help of each command."""
    folder = Path(__file__).parent
    for path in sorted(folder.glob("*/*.py")):
        text = path.read_text()
        if 'if __name__ == "__main__":' in text:
            name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
            shows = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
            print(f"python -m {name.removesuffix('.__main__')}\n    {' '.join(shows.split())}")


if __name__ == "__main__":
    main()
