"""``python -m roofbook.words``: say what the catalogues of the report in this folder lack."""

import sys
from pathlib import Path

from roofbook.words.check import complaints


def main() -> int:
    """Print what is wrong with every language below templates/locale; return 1 where something is."""
    root = Path()
    found = [
        f"{folder.name}: {text}"
        for folder in sorted((root / "templates" / "locale").iterdir())
        if folder.is_dir()
        for text in complaints(root, folder.name)
    ]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
