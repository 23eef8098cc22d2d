"""How a build grows with subjects and with rows."""

from collections.abc import Iterator

from tests.bench.folder import MB, Cost, build, curve, report

TITLE = "builds of 1, 10 and 30 subjects, and of 100,000 rows; seconds of computing, most memory held"
SUBJECTS = (1, 10, 30)
ROWS = 100_000


def lines() -> Iterator[str]:
    """Build each twice: all figures drawn, then none; many rows once, as their figures are few."""
    first: tuple[Cost, Cost] | None = None
    for count in SUBJECTS:
        with report({f"run-{number:02}": curve(number) for number in range(count)}) as folder:
            cold, warm = build(folder), build(folder)
            pages = list((folder / "site").rglob("*.html"))
            size = sum(page.stat().st_size for page in pages) / len(pages)
        first = first or (cold, warm)
        yield (
            f"{count:2} subjects: {len(pages):3} pages of {size / 1000:.0f} kB; "
            f"cold {cold.cpu_s:.1f} s ({cold.cpu_s / first[0].cpu_s:.1f} x), "
            f"warm {warm.cpu_s:.1f} s ({warm.cpu_s / first[1].cpu_s:.1f} x), "
            f"{warm.memory_mb:.0f} MB ({warm.memory_mb / first[1].memory_mb:.1f} x)"
        )
    with report({"run-00": curve(0, repeats=ROWS // 8)}) as folder:
        file_mb = (folder / "data" / "measured" / "run-00.parquet").stat().st_size / MB
        many = build(folder)
    few = (first or (many, many))[0]
    yield (
        f"{ROWS:,} rows of one subject ({file_mb:.1f} MB of parquet) against 24: "
        f"cold {many.cpu_s:.1f} s ({many.cpu_s / few.cpu_s:.1f} x), "
        f"{many.memory_mb:.0f} MB ({many.memory_mb / few.memory_mb:.1f} x)"
    )
