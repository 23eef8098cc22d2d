"""The rows behind a subject, to take away: each run as it was written, and all of them as one CSV."""

import re
from pathlib import Path
from typing import Final

from roofbook.pages.escape import slug
from roofbook.pages.plan_file import plan_text
from roofbook.pages.subjects import SubjectView

_FOLDER: Final = "data"
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RUNS_AS_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def run_files(view: SubjectView) -> dict[str, Path]:
    """Return the parquet files of the subject's runs, by the address they are published at."""
    return {f"{_FOLDER}/{_file_name(run.path)}": run.path for run in view.runs}


def plan_files(view: SubjectView) -> dict[str, bytes]:
    """Return the plans of the subject's runs, by address; a run without one, such as an import, has none."""
    plans = [(run, plan_text(run.facts.plan)) for run in view.runs]
    return {
        f"{_FOLDER}/{_file_name(run.path).removesuffix('.parquet')}.plan.yml": text.encode()
        for run, text in plans
        if text is not None
    }


def row_files(view: SubjectView) -> dict[str, bytes]:
    """Return the subject's rows as CSV, by address; empty cells are unknown, columns without any value are left out."""
    rows = view.subject.rows.dropna(axis="columns", how="all").copy()
    for column in rows.columns:
        if rows[column].dtype == "string":
            # A spreadsheet would run such a text as a formula.
            formula = rows[column].str.startswith(_RUNS_AS_FORMULA, na=False)
            rows.loc[formula, column] = "'" + rows.loc[formula, column]
    return {f"{_FOLDER}/{view.slug}.csv": rows.to_csv(index=False, lineterminator="\n").encode()}


def _file_name(path: Path) -> str:
    return path.name if _PLAIN_NAME.fullmatch(path.name) else f"{slug(path.stem)}.parquet"
