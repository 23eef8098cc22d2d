"""Numbers by name: what a name means, what stands beside the value, and what is no name."""

from pathlib import Path

import pytest

from roofbook.analysis.quantities import (
    Known,
    Quantities,
    Quantity,
    change,
    machine_quantities,
    model_quantities,
    ratio,
    subject_quantities,
)
from roofbook.analysis.subjects import subjects
from roofbook.facts import load_facts
from roofbook.record import Row, read_run
from roofbook.validity import findings, known_of, records

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def published() -> Quantities:
    """The numbers of the published log's subject, with its claims."""
    facts = load_facts(ROOT / "data" / "facts")
    run = read_run(ROOT / "data" / "measured" / "article-2026-08-31.parquet")
    (subject,) = subjects(run.rows)
    known = known_of(records(run.rows), facts)
    found = findings(records(run.rows), known)
    of_it = Known(known.machines["mac-mini-m4-32gb"], known.models["qwen2.5:7b", "Q4_K_M"], facts.mac_limits)
    return subject_quantities(subject, found, of_it, run.facts.origin["claims"])


def value(quantities: Quantities, name: str) -> float:
    found = quantities.find(name)
    assert found is not None
    assert found.middle is not None
    return found.middle


def test_a_point_has_its_median_with_interval_and_n(published: Quantities) -> None:
    """Five published runs, 379 384 394 394 403 ms: all five enclose the median with 1 - 2/2^5 = 93.75 %."""
    assert published.find("baseline-74.ttft_ms") == Quantity("ms", 394, 379, 403, 5, 0.9375)
    assert published.find("baseline.baseline-74.ttft_ms") == published.find("baseline-74.ttft_ms")


def test_parts_of_a_number_have_names(published: Quantities) -> None:
    """A bound, the bounds as a range, their level, how many."""
    parts = [published.find(f"baseline-74.ttft_ms.{part}") for part in ("low", "high", "interval", "level", "n")]

    assert parts == [
        Quantity("ms", 379, n=5),
        Quantity("ms", 403, n=5),
        Quantity("ms", None, 379, 403, 5, 0.9375),
        Quantity("share", 0.9375),
        Quantity("count", 5),
    ]


@pytest.mark.parametrize(
    ("name", "expected", "within"),
    [
        ("baseline-74.decode_tok_per_s", 21.3 * 68 / 69, 0.01),  # servers count the first token in
        ("baseline-74.tpot_ms", 1000 / (21.3 * 68 / 69), 0.03),
        ("baseline-3505.prefill_flops_per_s", 2.70e12, 0.01e12),  # 48.2 TFLOP in 17.846 s
        ("baseline-74.decode_datasheet_share", 0.766, 0.002),  # 91.8 of 120 GB/s
        ("baseline-74.decode_ceiling_tok_per_s", 27.4, 0.05),  # 120 / (4.3706 + cache)
        ("raw.same-prompt-3473.prefill_ms", 58, 0),
        ("raw.first-run-40.load_ms", 3010.01, 0),
        ("prefill.a_ms_per_token", 4.53, 0.005),
        ("prefill.b_ms_per_token2", 2.0e-4, 0.01e-4),
        ("prefill.hold_out_ms", 51_900, 50),
        ("prefill.hold_out_error_share", 0.074, 0.0005),
        ("prefill.two_points_ms", 51_930, 10),  # through 205: 891 and 4056: 21891, at 8016
        ("prefill.at_ms.16384", 128_000, 500),
        ("prefill.longest_ms_per_token", 48_337 / 8016, 1e-9),
        ("prefill.cached_factor.3505.90", 8.9, 0.05),
        ("prefill.cached_ttft_factor.3505.90", (18_326 + 123.5) / (2_054 + 123.5), 0.01),
        ("prefill.per_min.4096", 2.8, 0.1),
        ("prefill.excess_factor", 2.88, 0.01),  # (2.003e-4 / 4.526) / (200704 / (2 x 6525288448))
        ("model.work_flop.3505", 48.2e12, 0.05e12),
        ("model.kv_bytes.q8_0", 30_464, 0),
        ("model.file_bytes", 4_683_073_952, 0),
        ("machine.gpu_limit_bytes.macos26", 26_800_600_000, 0),
        ("claim.memory.requests_4k", 135, 0),
        ("claim.decode.ceiling_tok_per_s", 25.6, 0),
        ("claim.extrapolated_ms.16384", 126_000, 0),
        ("claim.rag_1600_tokens_ttft_s", 8_000, 0),
    ],
)
def test_published_numbers_are_found(published: Quantities, name: str, expected: float, within: float) -> None:
    """What the published log's rows give, by recomputation on paper."""
    assert value(published, name) == pytest.approx(expected, abs=within)


def test_arithmetic_is_a_range_from_the_measured_to_the_stated(published: Quantities) -> None:
    """A token's 15.785 GFLOP and 124.8 MB of cache: 2.9 TFLOPS and 100 GB/s cross at 4.3706 GB / (544.3 - 124.8 MB).

    At 4.6 TFLOPS and 120 GB/s: 4.3706 / (411.8 - 124.8 MB); so from 11 to 16. Each of 135 gets a 135th of 184 to 291.
    """
    # Bytes read in the time of one token's arithmetic: 15.785e9 / 2.9e12 x 100e9, and 15.785e9 / 4.6e12 x 120e9.
    assert published.find("crossover_requests.4096") == Quantity("count", None, 11, 16)
    together = published.find("together_tok_per_s.135.4096")
    assert (together.low, together.high) == pytest.approx((1.361, 2.159), abs=0.001)


def test_memory_is_a_range_for_its_reserve(published: Quantities) -> None:
    """21.333 GiB less 4.361 of weights and 1 to 2 of reserve, in caches of 4096 x 30,464 bytes: 128 to 137."""
    assert published.find("fits_requests.4096.q8_0.15") == Quantity("count", None, 128, 137)


def test_doubtful_rows_have_no_value_but_their_raw_one(published: Quantities) -> None:
    """A cache hit is no prefill time; the row itself can still be quoted as the trap it is."""
    assert published.find("same-prompt-3473.prefill_ms") == Quantity("ms", n=0)
    assert value(published, "raw.same-prompt-3473.prefill_ms") == 58


def test_claims_are_printed_figures(published: Quantities) -> None:
    """A claim keeps the digits it was published with."""
    assert published.find("claim.prediction_error_8k.refit") == Quantity("share", 0.007, printed=True)


@pytest.mark.parametrize(
    "name",
    [
        "prefill.a",
        "prefill.at_ms",
        "prefill.at_ms.many",
        "prefill.at_ms.16384.wide",
        "model.kv_bytes.q9",
        "baseline-47.ttft_ms",
        "",
        ".",
        "baseline-74.ttft_ms.low.low.x",
    ],
)
def test_other_names_mean_nothing(published: Quantities, name: str) -> None:
    assert published.find(name) is None


def test_a_subject_without_anything_known_has_names_without_values(frame: object) -> None:
    """No machine, no model, one failed row: the names are there, the values are unknown."""
    row: Row = {"run_id": "test", "kind": "prefill_curve", "phase": "measured", "status": "timeout", "point": "p"}
    (subject,) = subjects(frame([row]))  # type: ignore[operator]
    told = subject_quantities(subject, [], Known())

    assert [told.find(name) for name in ("prefill.a_ms_per_token", "prefill.at_ms.512", "p.ttft_ms")] == [
        Quantity("ms_per_token"),
        Quantity("ms"),
        Quantity("ms", n=0),
    ]
    assert told.find("machine.memory_bytes") is None


def test_two_points_of_one_name_have_only_their_long_names(frame: object) -> None:
    """Neither is meant by the short one."""
    rows = [
        {"run_id": "test", "experiment": name, "point": "p1", "phase": "measured", "status": "ok", "ttft_ms": ms}
        for name, ms in (("one", 10.0), ("two", 20.0))
    ]
    (subject,) = subjects(frame(rows))  # type: ignore[operator]
    told = subject_quantities(subject, [], Known())

    assert told.find("p1.ttft_ms") is None
    assert [value(told, f"{name}.p1.ttft_ms") for name in ("one", "two")] == [10, 20]


def test_ratios_and_changes() -> None:
    """17,960 / 394 = 45.6; 21.3 to 25 GiB over 8 is a range; 17.0 after 19.3 is 11.9 % less; unknown stays unknown."""
    assert ratio(Quantity("ms", 17_960), Quantity("ms", 394)).value == pytest.approx(45.58, abs=0.01)
    assert ratio(Quantity("bytes", None, 21.3, 25), Quantity("bytes", 8)) == Quantity("factor", None, 2.6625, 3.125)
    assert change(Quantity("tok_per_s", 19.3), Quantity("tok_per_s", 17.0)).value == pytest.approx(-0.119, abs=0.001)
    assert ratio(Quantity("ms", 1), Quantity("ms")) == Quantity("factor")
    assert ratio(Quantity("ms", 1), Quantity("ms", 0)) == Quantity("factor")
    assert change(Quantity("ms"), Quantity("ms", 1)) == Quantity("share")


def test_the_catalogue_has_numbers_without_a_subject() -> None:
    """A card's memory and bandwidth; a model whose file nobody looked into still has its cache."""
    facts = load_facts(ROOT / "data" / "facts")
    card = machine_quantities(facts.machine("desktop-rtx-4060-ti-8gb").machine)
    llama = model_quantities(facts.model("llama-3.1-8b").model.shape)

    assert card.find("memory_bytes") == Quantity("limit_bytes", 8 * 2**30)
    assert card.find("bandwidth_bytes_per_s") == Quantity("bytes_per_s", 288e9)
    assert llama.find("kv_bytes.q8_0") == Quantity("kv_bytes", 69_632)  # 2 x 32 x 8 x 128 x 34/32
