"""Quantities as people read them, in both languages."""

from pathlib import Path

import pytest

from roofbook.analysis.quantities import Quantity, Unit
from roofbook.pages.values import footing, told
from roofbook.words import Words, load_words

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def korean() -> Words:
    return load_words(ROOT / "templates" / "locale", "ko", strict=True)


@pytest.mark.parametrize(
    ("unit", "value", "english", "in_korean"),
    [
        ("ms", 394.0, "394 ms", "394 ms"),
        ("ms", 1999.0, "1,999 ms", "1,999 ms"),
        ("ms", 17960.0, "18.0 s", "18.0초"),
        ("ms", 58.0, "58 ms", "58 ms"),
        ("ms_per_token", 4.5263, "4.53 ms per token", "토큰당 4.53 ms"),
        ("tok_per_s", 20.991, "21.0 tok/s", "21.0 tok/s"),
        ("tokens", 407.2, "407 tokens", "407토큰"),
        ("count", 8.96, "9", "9"),
        ("share", 0.07407, "7.4 %", "7.4%"),
        ("factor", 45.58, "46 times", "46배"),
        ("bytes", 4_683_073_952.0, "4.68 GB", "4.68 GB"),
        ("limit_bytes", 8.0 * 2**30, "8 GiB", "8 GiB"),
        ("kv_bytes", 30_464.0, "29.8 KiB", "29.8 KiB"),
        ("flop", 48.209e12, "48.2 TFLOP", "48.2 TFLOP"),
        ("bytes_per_s", 120e9, "120 GB/s", "120 GB/s"),
        ("params", 7_615_616_512.0, "7.6B", "7.6B"),
        ("per_min", 2.7396, "2.7 a minute", "분당 2.7건"),
        ("ms", None, "unknown", "알 수 없음"),
    ],
)
def test_a_value_has_its_unit(unit: Unit, value: float | None, english: str, in_korean: str, korean: Words) -> None:
    """Rounded to what such a figure is worth; whole numbers without empty decimals."""
    quantity = Quantity(unit, value)

    assert [told(quantity, Words("en")), told(quantity, korean)] == [english, in_korean]


def test_a_range_is_told_by_its_ends(korean: Words) -> None:
    """One unit for both ends; equal ends are one value."""
    share = Quantity("share", None, 0.5871, 0.7183)

    assert [told(share, Words("en")), told(share, korean)] == ["59 to 72 %", "59~72%"]
    assert told(Quantity("tokens", None, 4.1, 4.2), Words("en")) == "4 tokens"
    assert told(Quantity("count", 135.0), Words("en"), unit=False) == "135"


def test_a_printed_figure_keeps_its_digits() -> None:
    """0.7 % was published, not 0.70; 0.07 / 0.01 is 7 and not 7.000000000000001."""
    assert told(Quantity("share", 0.007, printed=True), Words("en")) == "0.7 %"
    assert told(Quantity("share", 0.07, printed=True), Words("en")) == "7 %"


def test_what_a_number_stands_on(korean: Words) -> None:
    """How many of what, and the interval with its level; nothing known, nothing said."""
    median = Quantity("ms", 394, 379, 403, 5, 0.9375)
    fitted = Quantity("ms", 128_000, 103_000, 153_000, 6, 0.95, "lengths")

    assert footing(median, Words("en")) == "5 requests, 94 % interval 379 to 403 ms"
    assert footing(fitted, korean) == "프롬프트 길이 6가지, 95% 구간 103~153초"
    assert footing(Quantity("ms", 58), Words("en")) == ""
