"""The table at the end of a run, and the time that is left."""

import io

import pytest

from collect.outcome import outcome
from collect.pace import Pace
from collect.plan import RunSettings
from collect.schedule import Cell, Unit
from collect.summary import Figure, PointSummary, Spread, failures, prefill_tok_per_s, summarise, tpot_ms
from collect.tell import Tell
from roofbook.errors import PlanError
from roofbook.record import Row
from roofbook.validity import findings
from roofbook.words import Words


def row(**columns: object) -> Row:
    """A measured row of 100 prompt and 3 output tokens at 100, 120 and 140 ms."""
    return {
        "phase": "measured", "experiment": "e", "point": "p100-o3", "concurrency": 1, "prompt_tokens_wanted": 100,
        "order_index": 0, "status": "ok", "prompt_tokens": 100, "cached_tokens": 0, "output_tokens": 3,
        "ttft_ms": 100.0,
        "last_token_ms": 140.0, "e2e_ms": 141.0, "server_prefill_ms": None, **columns,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, 20.0),  # (140 - 100) / (3 - 1)
        ({"output_tokens": 1}, None),
        ({"output_tokens": 0}, None),
        ({"output_tokens": None}, None),
        ({"ttft_ms": None}, None),
        ({"last_token_ms": 100.0}, None),  # all at once: no time between them was seen
        ({"last_token_ms": 99.5}, None),  # B36: a last token before the first is an error, not a negative time
    ],
)
def test_b13_b36_tpot_is_null_where_it_cannot_be_told(columns: Row, expected: float | None) -> None:
    """B13, B36: under two tokens, tokens that came at once, and times that run backwards give no TPOT."""
    assert tpot_ms(row(**columns)) == expected


def test_prefill_speed_is_of_uncached_tokens_and_the_servers_clock_where_there_is_one() -> None:
    """100 tokens in 100 ms are 1,000 a second; by the server's 50 ms 2,000; with 40 cached 1,200."""
    assert prefill_tok_per_s(row()) == 1000
    assert prefill_tok_per_s(row(server_prefill_ms=50.0)) == 2000
    assert prefill_tok_per_s(row(server_prefill_ms=50.0, cached_tokens=40)) == 1200
    assert prefill_tok_per_s(row(prompt_tokens=None)) is None
    assert prefill_tok_per_s(row(cached_tokens=300)) is None  # of 100: nobody computes -200 tokens


def test_b13_a_point_without_tpot_rows_keeps_its_ttft() -> None:
    """B13: TPOT 20, 21, 22 beside a row of one token and one of none: median 21 of three, and TTFT of four."""
    rows = [
        row(last_token_ms=140.0), row(last_token_ms=142.0), row(last_token_ms=144.0), row(output_tokens=1),
        row(output_tokens=0, ttft_ms=None, last_token_ms=None),
    ]  # fmt: skip
    (point,) = summarise(rows, ["e"])
    assert point.tpot_ms == Figure(Spread(21, 20, 22), n=3, known=3)
    assert (point.n, point.ttft_ms) == (5, Figure(Spread(100, 100, 100), n=4, known=4))


def test_b08_only_good_rows_count_and_failures_are_told() -> None:
    """B08: a 503 after 12 ms and an interrupted row enter no median; the 503 is counted, the interrupted is not."""
    failed = row(status="http_503", ttft_ms=None, e2e_ms=12.0)
    rows = [row(), failed, row(status="interrupted"), row(phase="warmup", ttft_ms=9.0)]
    (point,) = summarise(rows, ["e"])
    assert (point.n, point.failed, point.ttft_ms) == (1, 1, Figure(Spread(100, 100, 100), n=1, known=1))
    assert failures(rows) == {"http_503": 1}


def test_what_a_doubt_spoils_is_in_no_median_and_counted() -> None:
    """Of three rows one read a cache (TTFT 10 ms where 100 and 104 are true): its TPOT stands, its TTFT does not."""
    rows = [row(), row(order_index=1, ttft_ms=10.0, last_token_ms=60.0, e2e_ms=61.0, cached_tokens=90),
            row(order_index=2, ttft_ms=104.0, last_token_ms=144.0, e2e_ms=145.0)]  # fmt: skip
    found = findings(rows)
    (point,) = summarise(rows, ["e"], found)
    assert point.ttft_ms == Figure(Spread(102, 100, 104), n=2, known=3)
    assert point.tpot_ms == Figure(Spread(20, 20, 25), n=3, known=3)
    heading, told = list(outcome(rows, ["e"], Words("en"), found))[1:3]
    assert told[heading.index("TTFT") :].startswith("102 (100 - 104), 2 of 3 ")
    assert told.endswith("20.0 (20.0 - 25.0)")


def test_a_figure_that_no_row_stands_for_has_no_median() -> None:
    """Every prompt came from a cache: none of two is all that can be said."""
    rows = [row(order_index=index, cached_tokens=90) for index in range(2)]
    assert "-, 0 of 2" in list(outcome(rows, ["e"], Words("en"), findings(rows)))[2]


def test_points_are_told_in_the_plans_order_and_by_length() -> None:
    """Whatever order they were measured in."""
    rows = [
        row(experiment="b", point="p9"), row(experiment="a", point="p200", prompt_tokens_wanted=200),
        row(experiment="a", point="p50", prompt_tokens_wanted=50),
    ]  # fmt: skip
    told: list[PointSummary] = summarise(rows, ["a", "b"])
    assert [(one.experiment, one.point) for one in told] == [("a", "p50"), ("a", "p200"), ("b", "p9")]


def cell(prompt_tokens: int, output_tokens: int = 10, *, concurrency: int = 1, pause_s: float = 0) -> Cell:
    run = RunSettings(pause_s=pause_s)
    return Cell("e", "baseline", f"p{prompt_tokens}", prompt_tokens, output_tokens, concurrency, 4, run)


def test_the_time_left_comes_from_the_same_cell_or_from_the_rates() -> None:
    """100 tokens took 100 ms to the first and 50 ms for 10 more: 400 tokens and 20 take about 400 + 100."""
    pace = Pace()
    assert pace.left_s([Unit(cell(100), "measured", (1,))]) is None
    pace.note(row(ttft_ms=100.0, e2e_ms=150.0, output_tokens=10), cell(100))
    assert pace.request_ms(cell(100)) == 150
    assert pace.request_ms(cell(400, 20)) == 400 + 100
    # two requests of 150 ms with a pause of 1 s before each, then four of 150 ms by two workers
    units = [Unit(cell(100, pause_s=1), "measured", (1, 2)), Unit(cell(100, concurrency=2), "measured", (1, 2, 3, 4))]
    assert pace.left_s(units) == pytest.approx(2 * 1.15 + 2 * 0.15)


def test_a_log_gets_a_line_every_few_seconds() -> None:
    """Without a terminal the first request and the one 6 s later are said, the one in between is not."""
    now = [0.0]
    out = io.StringIO()
    tell = Tell(Words("en"), out, clock=lambda: now[0])
    for seconds in (0, 3, 6):
        now[0] = seconds
        tell.began(cell(100 + seconds), "measured", 1)
    assert out.getvalue().splitlines() == [
        "[0/0] e p100, 1 of 4  about 0 s left", "[0/0] e p106, 1 of 4  about 0 s left",
    ]  # fmt: skip


def test_a_terminal_that_is_gone_stops_nothing() -> None:
    """A closed window is no reason to lose a run."""

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, f"Input/output error: {len(text)} characters")

    tell = Tell(Words("en"), Gone())
    tell.line("said to nobody")
    tell.problem(PlanError("%(file)s is wrong", file="p.yml"))
