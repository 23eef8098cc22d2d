"""One quantity has one number, whichever page of the published site says it, in either language."""

import html
import re
from pathlib import Path
from typing import Any

import pytest

SUBJECT = "mac-mini-m4-32gb-ollama-qwen2-5-7b-q4-k-m-q8-0-7196d2"

ROWS: dict[str, Any] = {
    "en": {
        "budget": "Prompt tokens within a TTFT of {} ms",
        "rag": "TTFT of a RAG prompt of 1,600 tokens",
        "requests": "Requests of 4,096 tokens that fit, {}",
        "limit": (
            r"from (\d+(?: to \d+)?) requests of 4,096 tokens on",
            r"arithmetic limits decode from (\d+(?: to \d+)?) requests on",
        ),
        "slower": (r"say the same more firmly: ([\d.]+) % less", r"the median rate changes by -([\d.]+) %"),
        "bend": r"The quadratic term is ([\d.]+) times .{0,40} takes \(([\d.]+) to ([\d.]+)\)",
    },
    "ko": {
        "budget": "TTFT {} ms 안에 들어가는 프롬프트 토큰",
        "rag": "1,600토큰 RAG 프롬프트의 TTFT",
        "requests": "들어가는 4,096토큰 요청 수, {}",
        "limit": (
            r"4,096토큰 요청이 (\d+(?:~\d+)?)\s*개가 될 때부터",
            r"요청 (\d+(?:~\d+)?)개부터는 연산이 디코드의 한계입니다",
        ),
        "slower": (r"토큰\s*의 차이는 ([\d.]+)%", r"속도 중앙값의 변화는 -([\d.]+)%"),
        "bend": r"제곱항이 .{0,40}?([\d.]+)배입니다\(([\d.]+)~([\d.]+)배\)",
    },
}


def read(site: Path, lang: str, page: str) -> str:
    """Return a page's source without what is not read: scripts."""
    source = (site / ("" if lang == "ko" else lang) / page).read_text(encoding="utf-8")
    return re.sub(r"<script.*?</script>", "", source, flags=re.DOTALL)


def rows(source: str) -> list[list[str]]:
    """Return every table row of a page as the texts of its cells."""
    found = re.findall(r"<tr>(.*?)</tr>", source, re.DOTALL)
    return [[plain(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)] for row in found]


def plain(source: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", source)).split())


def numbers(text: str) -> list[str]:
    return re.findall(r"\d[\d,]*(?:\.\d+)?", text)


def row_of(source: str, label: str) -> list[str]:
    return next(row for row in rows(source) if row and row[0] == label)


@pytest.mark.parametrize("lang", ["ko", "en"])
def test_a_prompts_budget_is_one_wherever_it_is_told(shipped: Path, lang: str) -> None:
    """The prefill page, the claims page, and for two seconds the front page and the story."""
    prefill = read(shipped, lang, f"{SUBJECT}/prefill.html")
    claims = read(shipped, lang, "claims.html")
    for seconds in (1, 2, 5):
        told = next(row for row in rows(prefill) if len(row) == 3 and numbers(row[0]) == [str(seconds)])
        held = row_of(claims, ROWS[lang]["budget"].format(f"{seconds * 1000:,}"))
        assert [numbers(told[1])[0], *numbers(told[2])] == numbers(held[2]), seconds
        if seconds == 2:
            for page in ("index.html", "story.html"):
                assert re.search(rf"(?<!\d){numbers(held[2])[0]}(?!\d)", plain(read(shipped, lang, page))), page


@pytest.mark.parametrize("lang", ["ko", "en"])
def test_the_wait_of_a_rag_prompt_is_one(shipped: Path, lang: str) -> None:
    """The claims page's recomputation stands with its interval in the prefill page's sentence."""
    held = numbers(row_of(read(shipped, lang, "claims.html"), ROWS[lang]["rag"])[2])
    sentence = next(
        line
        for line in map(plain, re.findall(r"<p>(.*?)</p>", read(shipped, lang, f"{SUBJECT}/prefill.html"), re.DOTALL))
        if "RAG" in line
    )
    assert len(held) == 3
    assert set(held) <= set(numbers(sentence))
    assert held[0] in numbers(plain(read(shipped, lang, "index.html")))


@pytest.mark.parametrize("lang", ["ko", "en"])
def test_the_requests_that_fit_are_one(shipped: Path, lang: str) -> None:
    """The claims page against the subject's table by type and length, for both KV types; and against its overview."""
    claims = read(shipped, lang, "claims.html")
    memory = rows(read(shipped, lang, f"{SUBJECT}/memory.html"))
    for kv_type in ("f16", "q8_0"):
        held = numbers(row_of(claims, ROWS[lang]["requests"].format(kv_type))[2])
        told = next(row for row in memory if row[0].startswith(kv_type) and len(row) == 5)
        assert numbers(told[2]) == held, kv_type
        if kv_type == "q8_0":
            assert set(held) <= set(numbers(plain(read(shipped, lang, f"{SUBJECT}/overview.html"))))


@pytest.mark.parametrize("lang", ["ko", "en"])
def test_how_much_the_curve_bends_is_one(shipped: Path, lang: str) -> None:
    """The correction on the claims page, the prefill page, the story, and the page of other machines."""
    found = re.search(ROWS[lang]["bend"], plain(read(shipped, lang, "claims.html")))
    assert found
    for page in (f"{SUBJECT}/prefill.html", "story.html", "reference.html"):
        text = plain(read(shipped, lang, page))
        between = r".{0,90}?".join(rf"(?<![\d.]){re.escape(number)}(?![\d.])" for number in found.groups())
        assert re.search(between, text), (page, found.groups())


@pytest.mark.parametrize("lang", ["ko", "en"])
def test_where_arithmetic_becomes_the_limit_is_one(shipped: Path, lang: str) -> None:
    """The page of metrics, the subject's memory page, and the page that explains memory."""
    said, shown = ROWS[lang]["limit"]
    told = re.search(said, plain(read(shipped, lang, "metrics.html")))
    drawn = re.search(shown, plain(read(shipped, lang, f"{SUBJECT}/memory.html")))
    listed = next(
        row
        for row in rows(read(shipped, lang, "memory.html"))
        if row[:2] == ["Mac mini M4, 32 GB", "q8_0"] and len(row) == 5
    )
    assert told
    assert drawn
    assert told[1] == drawn[1] == listed[3]


@pytest.mark.parametrize("lang", ["ko", "en"])
def test_how_much_decode_slows_is_one(shipped: Path, lang: str) -> None:
    """Between the baseline's two prompts: the page of metrics and the prefill page."""
    said, tested = ROWS[lang]["slower"]
    told = re.search(said, plain(read(shipped, lang, "metrics.html")))
    shown = re.search(tested, plain(read(shipped, lang, f"{SUBJECT}/prefill.html")))
    assert told
    assert shown
    assert told[1] == shown[1]


@pytest.mark.parametrize("lang", ["ko", "en"])
def test_the_verdicts_add_up_to_the_checks(shipped: Path, lang: str) -> None:
    """The headline's counts, those under other conditions too: the whole is their sum, and their rows stand below."""
    source = read(shipped, lang, "claims.html")
    answer = re.search(r'class="rb-answer"[^>]*>(.*?)</p>', source, re.DOTALL)
    assert answer
    told = [int(number) for number in numbers(plain(answer[1]).replace("5%", "").replace("5 %", ""))]
    whole, parts = told[0], told[1:7]
    tallies = [int(row[1]) for row in rows(source) if len(row) == 2 and row[1].isdigit()]
    assert whole == sum(parts) == sum(tallies)
    assert whole == len([row for row in rows(source) if len(row) == 5 and numbers(row[1])])  # no check is left out
