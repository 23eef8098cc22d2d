"""Starts that were held back, came in lumps, were not seen or were no tokens; and streams that only look so."""

from collections.abc import Callable, Sequence
from itertools import accumulate

import pytest

from roofbook.record import Row
from roofbook.validity import Finding

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]
KINDS = ("held_start", "lumped_start", "unseen_tokens", "first_apart", "buffered", "coalesced")


def stream(row: MakeRow, first_ms: float, gaps: Sequence[float], **more: object) -> Row:
    """Return a row of pieces with *gaps* between them, one token each, of a server that tells no times."""
    times = list(accumulate(gaps, initial=first_ms))
    tokens = len(times)
    counted: Row = {"output_tokens": tokens, "output_tokens_wanted": None, "chunks": tokens, "chunk_times_ms": times}
    stamps: Row = {"ttft_ms": times[0], "first_answer_ms": times[0], "last_token_ms": times[-1]}
    quiet: Row = {"e2e_ms": times[-1] + 1, "server_prefill_ms": None, "output_token_source": "server"}
    return row(**(counted | stamps | quiet | more))


def told(judge: Judge, one: Row) -> list[tuple[str, frozenset[str]]]:
    return [(finding.kind, finding.spoils) for finding in judge([one], *KINDS)]


@pytest.mark.parametrize(
    ("first_ms", "gaps", "spoilt"),
    [
        # A proxy holds 13 of 16 pieces, then passes them on: 12 tokens of 12 ms late in 228, 80 % of the gaps gone.
        (228.0, [0.0] * 12 + [12.0] * 3, {"ttft", "tpot"}),
        # The same of 64: 12 of 63 gaps are 19 %.
        (228.0, [0.0] * 12 + [12.0] * 51, {"ttft", "tpot"}),
        # Three of 400 at the start: a quarter of a TTFT of 100 ms, half a per cent of the gaps.
        (100.0, [0.0, 0.0] + [12.5] * 397, {"ttft"}),
    ],
)
def test_a_start_that_came_at_one_moment_was_held(
    row: MakeRow, judge: Judge, first_ms: float, gaps: list[float], spoilt: set[str]
) -> None:
    """A burst, then single tokens: what it moves is spoilt, and the end-to-end time is not."""
    assert told(judge, stream(row, first_ms, gaps)) == [("held_start", spoilt)]


def test_a_held_start_says_what_it_moved(row: MakeRow, judge: Judge) -> None:
    """13 of 16 pieces: 12 x 12 ms = 144 ms late, and 12 of 15 gaps gone."""
    (found,) = judge([stream(row, 228.0, [0.0] * 12 + [12.0] * 3)])
    assert dict(found.values) == {
        "held": 13, "chunks": 16, "late_ms": pytest.approx(144), "ttft_ms": 228.0, "share": pytest.approx(0.8),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("first_ms", "gaps", "more"),
    [
        (200.0, [0.0] + [12.0] * 30, {}),  # two in one read: by chance, or a character of two tokens
        (200.0, [12.0] + [0.0, 0.0, 36.0] * 20, {}),  # guessing ahead: the first token alone, then three a step
        (200.0, ([0.0, 0.0, 36.0] * 33)[:-1], {}),  # three a step from the first on, over 99 tokens
        (228.0, [0.0] * 3 + [12.0] * 61, {"loop_lag_ms": 36.0}),  # the client was late, and says so itself
        (5000.0, [0.0] * 3 + [12.0] * 100, {}),  # 36 ms of 5 s, 3 of 103 gaps
    ],
)
def test_a_burst_at_the_start_that_moves_nothing_is_no_doubt(
    row: MakeRow, judge: Judge, first_ms: float, gaps: list[float], more: Row
) -> None:
    """Chance, guessing ahead, a late client that is told as such, and a burst too small to matter."""
    assert told(judge, stream(row, first_ms, gaps, **more)) == []


@pytest.mark.parametrize(
    ("first_ms", "gaps", "tokens", "spoilt"),
    [
        # Passed on in eights, every 96 ms: of 16 tokens 7 of 15 gaps are gone, of 48 7 of 47.
        (146.0, [*[0.0] * 7, 96.0, *[0.0] * 7], 16, {"ttft", "tpot"}),
        (146.0, ([*[0.0] * 7, 96.0] * 6)[:-1], 48, {"ttft", "tpot"}),
        # Four tokens a piece: 3 of 15 gaps; each 12 ms, so the first was ready 36 ms before 99.
        (99.0, [48.0] * 3, 16, {"ttft", "tpot"}),
        # The same after a long prompt: 36 ms of 3 s are nothing.
        (3000.0, [48.0] * 3, 16, {"tpot"}),
        # Three pieces for 16 tokens: 13 were in a channel that nobody knows, 13 x 12 ms before the first piece.
        (227.0, [12.0] * 2, 16, {"ttft", "tpot"}),
    ],
)
def test_lumps_weigh_on_a_short_answer(
    row: MakeRow, judge: Judge, first_ms: float, gaps: list[float], tokens: int, spoilt: set[str]
) -> None:
    """Tokens that came with the first took no time, and are counted as if they had."""
    assert told(judge, stream(row, first_ms, gaps, output_tokens=tokens)) == [("lumped_start", spoilt)]


def test_a_late_client_joins_no_tokens_into_one_piece(row: MakeRow, judge: Judge) -> None:
    """Four tokens a piece are the server's doing, however late the client was."""
    found = told(judge, stream(row, 99.0, [48.0] * 3, output_tokens=16, loop_lag_ms=40.0))
    assert found == [("lumped_start", {"ttft", "tpot"})]


def test_lumps_say_how_many_and_how_much(row: MakeRow, judge: Judge) -> None:
    """16 tokens in 4 pieces: about 4 with the first, 3 of 15 gaps."""
    (found,) = judge([stream(row, 99.0, [48.0] * 3, output_tokens=16)])
    assert dict(found.values) == {"tokens": 4, "output_tokens": 16, "chunks": 4, "share": pytest.approx(0.2)}


@pytest.mark.parametrize(
    ("gaps", "tokens", "more"),
    [
        ([36.0] * 10, 33, {}),  # guessing ahead gives three tokens a piece: 2 of 32 gaps
        ([20.0] * 12, 16, {}),  # characters of two tokens among others: 13 pieces for 16
        ([24.0] * 7, 16, {}),  # and one script of only such: 1 of 15 gaps
        ([48.0] * 31, 128, {}),  # four tokens a piece, over a long answer
        ([48.0] * 3, 16, {"output_token_source": "estimate"}),  # nobody counted: told as an estimate
        ([0.0, 0.0, 0.0, *[12.0] * 12], 16, {"loop_lag_ms": 40.0}),  # a late client reads several events at once
        ([0.0, 20.0, 0.0], 4, {}),  # two tokens a step
        ([1.0] * 99, 100, {}),  # a thousand a second, one by one
    ],
)
def test_several_tokens_a_piece_are_often_no_doubt(
    row: MakeRow, judge: Judge, gaps: list[float], tokens: int, more: Row
) -> None:
    """Guessing ahead, characters of several tokens, long answers."""
    assert told(judge, stream(row, 200.0, gaps, output_tokens=tokens, **more)) == []


@pytest.mark.parametrize(("tokens", "found"), [(25, False), (24, True)])
def test_lumps_count_from_an_eighth(row: MakeRow, judge: Judge, tokens: int, found: bool) -> None:
    """Four in the first moment: 3 of 24 gaps are an eighth, 3 of 23 are more; each later token by itself but two."""
    gaps = [0.0] * 3 + [12.0] * (tokens - 6) + [0.0] * 2
    assert bool(told(judge, stream(row, 5000.0, gaps))) is found


@pytest.mark.parametrize(
    ("decode_ms", "end_ms", "spoilt"),
    [
        (360.0, 561.0, {"ttft", "tpot"}),  # 24 tokens by the server's clock, and 16 of them seen
        (700.0, 900.0, {"tpot"}),  # the end was kept back: a tool call, sent when it was complete
    ],
)
def test_tokens_that_the_server_wrote_and_nobody_saw(
    row: MakeRow, judge: Judge, decode_ms: float, end_ms: float, spoilt: set[str]
) -> None:
    """Its decode time is far longer than the stream's 180 ms."""
    one = stream(row, 380.0, [12.0] * 15, server_decode_ms=decode_ms, e2e_ms=end_ms, output_tokens=24)
    assert told(judge, one) == [("unseen_tokens", spoilt)]


@pytest.mark.parametrize(
    ("decode_ms", "tokens"),
    [
        (180.0, 16),  # from the first token to the last
        (192.0, 16),  # and with the step of the first
        (204.0, 17),  # and with a last token that has no text
        (192.0 + 20, 16),  # the clocks differ by a step or two
        (5000.0, 16),  # longer than the whole request: that is a clock's error
    ],
)
def test_a_servers_decode_time_may_have_a_step_more(row: MakeRow, judge: Judge, decode_ms: float, tokens: int) -> None:
    """16 pieces over 180 ms; servers count their steps from different ends."""
    one = stream(row, 380.0, [12.0] * 15, server_decode_ms=decode_ms, output_tokens=tokens)
    assert told(judge, one) == []


@pytest.mark.parametrize(
    ("first_ms", "gaps"),
    [
        (0.7, [224.0] + [12.0] * 15),  # a status event taken for a token
        (50.0, [160.0] + [12.0] * 14),  # a lone space as a sign of life
    ],
)
def test_a_first_piece_far_before_the_others_is_no_token(
    row: MakeRow, judge: Judge, first_ms: float, gaps: list[float]
) -> None:
    """The prompt is read before the first token, not after it."""
    (found,) = judge([stream(row, first_ms, gaps)])
    assert (found.kind, found.spoils) == ("first_apart", {"ttft", "tpot"})
    assert dict(found.values) == {"ttft_ms": first_ms, "gap_ms": pytest.approx(gaps[0]), "usual_ms": pytest.approx(12)}


@pytest.mark.parametrize(
    ("first_ms", "gaps", "more"),
    [
        (200.0, [150.0] + [12.0] * 15, {}),  # a first step that builds its kernels, or reads a draft model's prompt
        (5.0, [45.0] + [4.0] * 15, {}),  # a short pause of the system after a cached prompt
        (20.0, [300.0] + [50.0] * 15, {}),  # a slow model after a tiny prompt: six gaps, not ten
        (50.0, [160.0] + [12.0] * 15, {"concurrency": 8}),  # another request's prompt was read in between
        (50.0, [160.0] + [12.0] * 15, {"kind": "request_rate"}),
        (50.0, [160.0] + [12.0] * 15, {"loop_lag_ms": 150.0}),  # the client stood still
        (50.0, [160.0, 12.0, 12.0], {}),  # what is usual, two gaps do not say
    ],
)
def test_a_pause_after_the_first_token_has_many_reasons(
    row: MakeRow, judge: Judge, first_ms: float, gaps: list[float], more: Row
) -> None:
    """Shorter than TTFT, or shared, or the client's."""
    assert told(judge, stream(row, first_ms, gaps, **more)) == []


@pytest.mark.parametrize("times", [[], [200.0]])
def test_a_stream_of_no_piece_or_one_has_no_start(row: MakeRow, judge: Judge, times: list[float]) -> None:
    """Nothing can be said of it, and nothing breaks."""
    assert told(judge, stream(row, 200.0, [12.0] * 15, chunk_times_ms=times)) == []
