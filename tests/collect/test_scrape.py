"""What servers count of themselves: read from their metrics while they are measured."""

from datetime import UTC, datetime, timedelta

from collect.client import Target
from collect.oracle import Oracle, Request, Script, answer, routes, text
from collect.scrape import Scraper, samples_of

METRICS = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="/home/alice/m"} 2.0
vllm:num_requests_running{engine="1",model_name="/home/alice/m"} 1.0
vllm:cache_config_info{block_size="128",engine="0"} 1.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1"} 7.0
vllm:time_to_first_token_seconds_sum{engine="0"} 1.25
vllm:generation_tokens_total{engine="0"} 1.5e+03
vllm:generation_tokens_created{engine="0"} 1.7e+09
vllm:kv_cache_usage_perc{engine="0"} NaN
process_resident_memory_bytes 4.2e+08
llamacpp:requests_processing 1
"""


def test_a_servers_own_figures_are_kept_and_added_up() -> None:
    """Label sets are added up and forgotten; buckets, infos, dates, NaN and the process's own figures are left out."""
    assert samples_of(METRICS) == {
        "vllm:num_requests_running": 3.0,
        "vllm:time_to_first_token_seconds_sum": 1.25,
        "vllm:generation_tokens_total": 1500.0,
        "llamacpp:requests_processing": 1.0,
    }


def test_no_metrics_text_is_an_error() -> None:
    """A web page, half a line, or a number that is none: nothing is kept."""
    assert samples_of("<html>vllm:x 1</html>") == {}
    assert samples_of("vllm:x") == {}
    assert samples_of("vllm:abc 1e\nvllm:abd 1.2.3\n") == {}


def test_metrics_are_sampled_from_before_to_after() -> None:
    """Two looks at least, at its start and at its end, each with its time; the key goes along."""
    asked: list[str] = []
    looks: list[object] = []

    def metrics(request: Request) -> Script:
        asked.append(request.headers.get("authorization", ""))
        return text(f"llamacpp:tokens_predicted_total {len(asked)}\n")

    times = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second) for second in range(9))
    with (
        Oracle(routes({"/metrics": metrics})) as oracle,
        Scraper(Target(oracle.url, "k"), lambda *look: looks.append(look), period_s=60, now=lambda: next(times)),
    ):
        pass
    name = "llamacpp:tokens_predicted_total"
    assert looks == [
        (datetime(2026, 1, 1, tzinfo=UTC), {name: 1.0}), (datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC), {name: 2.0}),
    ]  # fmt: skip
    assert asked == ["Bearer k", "Bearer k"]


def test_a_server_without_metrics_is_asked_once() -> None:
    """404 at the start: no thread, and not another question."""
    looks: list[object] = []
    with Oracle(routes({"/metrics": answer({}, status=404)})) as oracle:
        with Scraper(Target(oracle.url), lambda *look: looks.append(look), period_s=0.001):
            pass
        assert len(oracle.heard) == 1
    assert looks == []
