"""Where things lie in a report's folder: the one with mkdocs.yml, which is where every command is run."""

from dataclasses import dataclass
from pathlib import Path

from roofbook.errors import UsageError


@dataclass(frozen=True)
class Places:
    """The rooms of one report's folder."""

    root: Path

    @property
    def facts(self) -> Path:
        return self.root / "data" / "facts"

    @property
    def measured(self) -> Path:
        return self.root / "data" / "measured"

    @property
    def sources(self) -> Path:
        return self.root / "data" / "sources"

    @property
    def locale(self) -> Path:
        return self.root / "templates" / "locale"

    @property
    def compiled(self) -> Path:
        """Templates as Python runs them, kept from one build to the next."""
        return self.root / ".cache" / "templates"

    @property
    def plans(self) -> Path:
        return self.root / "plans"


def places_here(folder: Path | None = None) -> Places:
    """Return the places of *folder* (default: the current one).

    Raises UsageError where it is not a report's folder.
    """
    root = Path() if folder is None else folder
    if not (root / "mkdocs.yml").is_file():
        raise UsageError(
            "There is no mkdocs.yml in %(folder)s: run this in the folder of your report", folder=root.absolute()
        )
    return Places(root)
