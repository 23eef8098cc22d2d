"""The published claims beside what the rows, the catalogue and the theory give: recomputed, never copied."""

from pathlib import Path

import pytest

from roofbook.analysis.claims import RECOMPUTED, Claim, Evidence, claims
from roofbook.analysis.claims.claim import claim
from roofbook.analysis.latency import latency_points
from roofbook.analysis.regression import Interval
from roofbook.analysis.subjects import curve_of, subjects
from roofbook.facts import load_facts
from roofbook.record import Run, read_run
from roofbook.theory.shapes import Range
from roofbook.validity import findings, known_of, records

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def run() -> Run:
    return read_run(DATA / "measured" / "article-2026-08-31.parquet")


@pytest.fixture(scope="module")
def table(run: Run) -> dict[tuple[str, str | None], Claim]:
    rows, facts = records(run.rows), load_facts(DATA / "facts")
    known = known_of(rows, facts)
    found = findings(rows, known)
    (subject,) = subjects(run.rows)
    model, machine = known.model(rows[0]), known.machine(rows[0])
    assert model is not None
    assert machine is not None
    evidence = Evidence(
        rows=tuple(rows),
        points=tuple(latency_points(run.rows, found)),
        curve=curve_of(subject, found),
        facts=facts,
        model=model,
        machine=machine,
        quantization="Q4_K_M",
        kv_type="q8_0",
    )
    return {(line.key, line.at): line for line in claims(run.facts.origin["claims"], evidence)}


def test_every_published_claim_is_recomputed(run: Run) -> None:
    """No key of the publication is left without a recomputation, and none is recomputed that was not published."""
    assert set(run.facts.origin["claims"]) == set(RECOMPUTED)


@pytest.mark.parametrize(
    ("key", "at", "recomputed", "verdict"),
    [
        ("prefill_fit_linear", None, 4.526, "same"),
        # Printed 1.96e-4, so 1.955 to 1.965; the interval reaches from 1.1 to 2.9.
        ("prefill_fit_quadratic", None, 2.003e-4, "within"),
        # Through 205 and 4,056 tokens: a 4.2904, b 2.729e-4.
        ("first_fit_prediction", "8192", 53460, "same"),
        ("held_out_prediction", "8016", 51917, "within"),
        # A prediction that the point was part of has no error: 7.4 % out of sample, not 0.7.
        ("prediction_error_refit", "8016", 0.0741, "differs"),
        ("prediction_error_first", "8016", 0.0743, "differs"),
        # 3.302 of 52.93 + 3.302 TFLOP, 12.90 of 104.6 + 12.90.
        ("quadratic_share_by_theory", "4056", 0.0587, "differs"),
        ("quadratic_share_by_theory", "8016", 0.1098, "differs"),
        ("decode_ceiling", None, 27.44, "differs"),
        # 21.3 x 68/69: the first token is counted, not timed.
        ("decode_measured", None, 20.99, "close"),
        ("decode_share", None, 0.765, "differs"),
        ("prefill_reached", None, 2.70, "differs"),
        ("prefill_work", "3505", 48.21, "differs"),
        ("weights", None, 4.683, "differs"),
        ("weights_8b", "F16", 16.06, "same"),
        ("weights_8b", "Q8_0", 8.53, "differs"),
        ("weights_32b", "Q4_K_M", 19.85, "differs"),
        ("gpu_share", "36", 0.75, "differs"),
        ("bytes_per_value", "q8_0", 1.0625, "same"),
        ("kv_per_token_8b", "q8_0", 69.632, "other_unit"),
        ("kv_table_8b", "50 x 8192", 28.52, "other_unit"),
        ("kv_table_8b", "50 x 4096", 14.26, "close"),
        ("kv_50_users", "f16", 53.69, "other_unit"),
        ("kv_50_users", "q8_0", 28.52, "differs"),
        ("four_bit_memory", None, 3.257, "differs"),
        ("ttft_long_over_short", None, 45.58, "close"),
        ("per_token_growth", "4056", 0.242, "same"),
        ("per_token_growth", "8016", 0.387, "differs"),
        ("context_effect", None, 0.00096, "same"),
        ("decode_change", "8016", -0.119, "differs"),
    ],
)
def test_a_claim_is_held_against_its_recomputation(
    table: dict[tuple[str, str | None], Claim], key: str, at: str | None, recomputed: float, verdict: str
) -> None:
    """Each value is worked out in the theory's own terms, from bytes, FLOPs and the six published lengths."""
    line = table[key, at]
    assert line.mid == pytest.approx(recomputed, rel=2e-3, abs=1e-6)
    assert line.verdict == verdict


@pytest.mark.parametrize(
    ("key", "at", "low", "high", "verdict"),
    [
        # 21,845 MiB up to macOS 15, 26,800.6 MB since.
        ("gpu_usable", None, 22.91, 26.80, "other_unit"),
        # Weights 4,683.07 MB, a reserve of 1 to 2 GiB, 30,464 B x 4,096 in q8_0, 57,344 B x 4,096 in f16:
        # (22,906.5 - 4,683.1 - 2,147.5) / 124.78 = 128.8, (26,800.6 - 4,683.1 - 1,073.7) / 124.78 = 168.6.
        ("requests_at_once", "q8_0", 128, 168, "within"),
        # 16,075.9 / 234.88 = 68.4, 21,043.8 / 234.88 = 89.6.
        ("requests_at_once", "f16", 68, 89, "differs"),
        ("prefill_peak", None, 3.76, 4.6, "within"),
        ("prefill_share", None, 0.587, 0.718, "within"),
        # As it is, and with both prompts at one length.
        ("cache_factor", None, 304.9, 307.7, "overlaps"),
        ("smaller_model_work", None, 0.426, 0.459, "differs"),
        # 126 s as printed is 125.5 to 126.5, and the law's middle 127.9.
        ("extrapolation", "16384", 102610, 153270, "within"),
        # a alone, 4.526 x 16,384 = 74.15 s, and 74 s were printed.
        ("linear_estimate", "16384", 69300, 79010, "same"),
        # The prediction band and the curve's own overhead of 123.5 ms, as on the prefill page.
        ("prompt_budget", "2000", 363, 463, "within"),
        ("rag_ttft", "1600", 6.97, 8.79, "same"),
    ],
)
def test_a_range_is_recomputed_as_a_range(
    table: dict[tuple[str, str | None], Claim], key: str, at: str | None, low: float, high: float, verdict: str
) -> None:
    """Disputed peaks, two macOS releases, prediction bands."""
    line = table[key, at]
    assert line.recomputed is not None
    assert (line.recomputed.low, line.recomputed.high) == (pytest.approx(low, rel=2e-3), pytest.approx(high, rel=2e-3))
    assert line.verdict == verdict


def test_an_assumption_cannot_be_recomputed(table: dict[tuple[str, str | None], Claim]) -> None:
    """1.5 GB of reserve is the author's own."""
    assert table["reserve", None].verdict == "not_derivable"


def test_few_corrections_change_a_decision(table: dict[tuple[str, str | None], Claim]) -> None:
    """The KV type, the quadratic term and the in-sample error."""
    assert {line.key for line in table.values() if line.changes_decision} == {
        "requests_at_once", "quadratic_share_by_theory", "prediction_error_refit",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("claimed", "recomputed", "verdict"),
    [
        (0.26, 0.2649, "same"),  # printed to 0.01
        (0.26, 0.2651, "close"),
        (300, 307.0, "same"),  # zeros at the end may be rounding
        (126_000, 126_400, "same"),  # of three printed digits
        (126_000, 127_900, "close"),
        (50, 53.7, "differs"),  # but not by seven per cent
        (45, 45.4, "same"),
        (45, 45.6, "close"),
        (4, 3.25, "differs"),
        (48.7, Interval(51.9, 38.9, 64.9), "within"),
        (51.9, Interval(51.94, 38.9, 64.9), "same"),
        (0.7, Range(0.5, 0.8), "within"),
        (300, Range(304.9, 307.7), "overlaps"),
        (Range(4, 6), Range(3.7, 6.2), "within"),
        (Range(4, 6), Range(4.7, 6.2), "overlaps"),
        (Range(4, 6), Range(7.2, 8.0), "differs"),
        (21.3, None, "not_derivable"),
    ],
)
def test_a_figure_is_read_as_far_as_it_was_printed(
    claimed: float | Range, recomputed: float | Range | Interval | None, verdict: str
) -> None:
    """Half a step of the last digit is rounding, five per cent is close, more is another number."""
    assert claim("key", claimed, recomputed, "share").verdict == verdict


def test_only_a_binary_computation_is_excused_as_one() -> None:
    """21.3 GiB printed as GB; a decimal computation that happens to be near a binary figure is not."""
    slip = claim("gpu_usable", 21.3, 22.906, "gb")
    assert (slip.verdict, slip.binary().verdict) == ("differs", "other_unit")


def test_what_was_not_claimed_of_a_condition_is_told_apart(table: dict[tuple[str, str | None], Claim]) -> None:
    """The article spoke of the fit's share, of q8_0, of f16 for 50 users, and of 4,056 tokens; all else is ours."""
    assert {where for where, line in table.items() if line.elsewhere} == {
        ("quadratic_share_by_theory", "205"), ("quadratic_share_by_theory", "4056"),
        ("quadratic_share_by_theory", "8016"), ("requests_at_once", "f16"), ("kv_50_users", "q8_0"),
        ("per_token_growth", "8016"), ("decode_change", "8016"),
    }  # fmt: skip
    assert sum(line.verdict == "differs" and not line.elsewhere for line in table.values()) == 14
