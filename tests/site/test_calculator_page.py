"""The page of the calculators before a browser sees it: what it carries, what it says, and to whom."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from roofbook.analysis.prefill import prompt_budget
from roofbook.analysis.regression import Interval, fit
from roofbook.analysis.sharing import half_width, with_cached_share
from roofbook.charts.cache import FigureCache
from roofbook.facts import load_facts
from roofbook.pages.calculator import BLOCKS, LIMITS, SENTENCES
from roofbook.pages.report import build_site
from roofbook.pages.settings import read_settings
from roofbook.pages.site import Page
from roofbook.places import Places
from roofbook.theory.coefficients import KeptHeads, model_coefficients, weights_or_none
from roofbook.theory.counts import ENDLESS, most
from roofbook.theory.prompts import longest_prompt
from roofbook.theory.roofline import prefill_floor_ms

ROOT = Path(__file__).parents[2]
HOSTILE = "</template><script>alert(1)</script>"


def page_of(folder: Path, lang: str = "en") -> Page:
    site = build_site(Places(folder), read_settings(folder / "mkdocs.yml"), lang, FigureCache(None))
    return site.page("calculator.md")


def carried(page: Page) -> Any:
    """Return the JSON that the page hands to its script."""
    found = re.search(r'<template id="calculator-data">(.*?)</template>', page.figures["calculator-setup"], re.DOTALL)
    assert found is not None
    return json.loads(html.unescape(found[1]))


@pytest.fixture(scope="module")
def english(report: Path) -> Page:
    return page_of(report)


def test_both_languages_have_the_sections_and_every_sentence(report: Path, english: Page) -> None:
    """The same anchors and parts; all that the script says is there in Korean too, with the same places."""
    korean = page_of(report, "ko")
    anchors = re.findall(r"\{: #([\w-]+) \}", english.markdown)
    said = {lang: carried(page)["words"] for lang, page in (("en", english), ("ko", korean))}

    assert anchors == ["calculator", "memory-calculator", "prompt-calculator", "ceiling-calculator", "method"]
    assert re.findall(r"\{: #([\w-]+) \}", korean.markdown) == anchors
    assert list(korean.figures) == list(english.figures) == [f"calculator-{name}" for name in BLOCKS]
    assert said["en"]["law_band"] == "95 % band %(low)s to %(high)s"
    assert said["ko"].keys() == said["en"].keys()
    places = {lang: {name: sorted(re.findall(r"%\(\w+\)s", text)) for name, text in words.items()}
              for lang, words in said.items()}  # fmt: skip
    assert places["ko"] == places["en"]


def test_the_script_says_only_what_the_page_brings() -> None:
    """Every sentence that the script asks for by its name is there, and none is there for nothing."""
    script = (ROOT / "site_src" / "assets" / "calculator.js").read_text(encoding="utf-8")
    asked = set(re.findall(r'say\(\s*"(\w+)"', script)) | set(re.findall(r"words\.(\w+)", script))
    asked |= set(
        re.findall(r'say\(\w+ \? "(\w+)" : "\w+"', script) + re.findall(r'say\([^"]*? \? "\w+" : "(\w+)"', script)
    )
    asked |= set(re.findall(r'say\([\w.\[\] >=]+ \? "(\w+)"', script))
    built = ("basis_", "counted_", "held_", "row_")

    assert asked - SENTENCES.keys() - {"push", *built} == set()
    assert {name for name in SENTENCES if name not in asked and not name.startswith(built)} == set()


def test_the_coefficients_are_theorys(english: Page, report: Path) -> None:
    """Qwen2.5 7B Q4_K_M: 28 layers x 4 KV heads of 128 + 128, so 112 heads; its file's 4,677,120,000 bytes."""
    data = carried(english)
    model, machine = data["models"]["qwen2.5-7b"], data["machines"]["mac-mini-m4-32gb"]

    assert model["kept"] == {"global": [[28 * 4, 128, 128]], "local": [], "state": 0, "local_layers": 0, "window": None}
    assert model["weights"]["Q4_K_M"]["total"] == [4_677_120_000, 4_677_120_000]
    assert machine["bandwidth"] == [120e9, 120e9]
    assert list(machine["limits"]) == ["", "15", "26"]
    assert machine["limits"]["15"]["bytes"] == [32 * 2**30 * 2 / 3] * 2  # two thirds below 36 GiB
    assert data["kv_blocks"]["q8_0"] == [32, 34]
    assert set(data["models"]) >= set(load_facts(report / "data" / "facts").models)


def test_what_theory_does_not_know_is_null(english: Page) -> None:
    """A model with recurrent layers and no file has caches but no weights; a chip without a peak has no arithmetic."""
    data = carried(english)

    assert data["models"]["qwen3.5-27b"]["weights"] == {}
    assert data["models"]["qwen3.5-27b"]["kept"]["state"] > 0
    assert any(machine["peaks"][0] is None for machine in data["machines"].values() if machine["peaks"])


def test_the_subjects_law_comes_with_its_band(english: Page) -> None:
    """The Mac's 18 rows at six lengths: their law, t with 18 - 2 degrees of freedom, and the 100 ms beside it."""
    mac = next(one for slug, one in carried(english)["subjects"].items() if slug.startswith("mac-mini"))

    assert mac["law"]["powers"] == [1, 2]
    assert mac["law"]["t"] == pytest.approx(2.1199053)  # the t table: 95 %, 16 degrees of freedom
    assert mac["law"]["overhead_ms"] == pytest.approx(100)
    assert mac["law"]["longest_tokens"] == 8016


def test_names_from_rows_stay_text(make_report: Any, curve_rows: Any) -> None:
    """A machine that calls itself markup is a name in the JSON, and breaks out of nothing."""
    rows = curve_rows([128, 256, 512, 1024, 2048], machine=HOSTILE, model=HOSTILE, api="ollama", server=HOSTILE)
    page = page_of(make_report({"20261001T030000-run": rows}))

    assert "<script>alert" not in "".join(page.figures.values())
    assert carried(page)["start"]["machine"] == "mac-mini-m4-32gb"


def test_without_rows_it_opens_with_a_usual_question(make_report: Any) -> None:
    """No subject: a model and a machine of the catalogue, f16 caches, no field for subjects."""
    page = page_of(make_report({}))
    start = carried(page)["start"]

    assert (start["model"], start["weights"], start["machine"]) == ("qwen2.5-7b", "Q4_K_M", "mac-mini-m4-32gb")
    assert (start["kv"], start["server"], start["subject"]) == ("f16", "llama.cpp", "")
    assert 'id="calc-subject"' not in page.figures["calculator-setup"]


def test_the_fields_say_their_limits(english: Page) -> None:
    """Each number field carries the range that its complaint names."""
    fields = "".join(english.figures.values())

    for name, (low, high) in LIMITS.items():
        assert re.search(rf'<input id="calc-{name}"[^>]* min="{low}" max="{high}"', fields), name


# ---- the arithmetic that is new beside theory's


def test_a_cached_share_leaves_the_rest_of_each_term() -> None:
    """At 10 ms and 0.01 ms/token^2: half of 1000 cached costs 10 x 500 + 0.01 (1000^2 - 500^2) = 12,500 ms."""
    exact = fit([100, 200, 400, 800], [10 * x + 0.01 * x**2 for x in (100, 200, 400, 800)], (1, 2))
    assert exact is not None

    assert with_cached_share(exact, 0.5).value(1000) == pytest.approx(12_500)
    assert with_cached_share(exact, 0.0) == exact


def test_the_band_of_a_cached_share_is_that_of_its_terms() -> None:
    """With half cached and one term, value and band are half of the uncached ones."""
    law = fit([100, 200, 400, 800], [990, 2020, 3990, 8050], (1,))
    assert law is not None
    whole, part = law.prediction(1000), with_cached_share(law, 0.5).prediction(1000)

    assert part == Interval(pytest.approx(whole.mid / 2), pytest.approx(whole.low / 2), pytest.approx(whole.high / 2))
    assert half_width(law) == pytest.approx(3.182446305284263)  # the t table: 95 %, three degrees of freedom


def test_a_longer_prompt_fits_when_half_is_cached() -> None:
    """4.5 ms a token: 2,000 ms hold 2000 / 4.5 = 444 tokens, and 889 with half of them cached."""
    law = fit([100, 200, 400, 800], [450, 900, 1800, 3600], (1,))
    assert law is not None

    assert prompt_budget(law, 2000, 0, 800).mid == pytest.approx(2000 / 4.5)
    assert prompt_budget(with_cached_share(law, 0.5), 2000, 0, 800).mid == pytest.approx(2 * 2000 / 4.5)


@pytest.mark.parametrize(("limit", "found"), [(0, 0), (1, 1), (7, 7), (8, 8), (1_000_000, 1_000_000)])
def test_the_largest_count_that_fits_is_found(limit: int, found: int) -> None:
    """Of counts up to a limit the limit itself."""
    assert most(lambda count: count <= limit) == found


def test_without_an_end_the_count_is_infinite() -> None:
    """Where 2^20 fit, there is no end."""
    assert most(lambda count: count <= ENDLESS) == float("inf")


@pytest.mark.parametrize("cached", [0, 80])
def test_the_longest_prompt_meets_its_target_and_one_token_more_does_not(cached: int) -> None:
    """The floor of the prefill time at the count and one beyond, at both ends of the chip's peak."""
    facts = load_facts(ROOT / "data" / "facts")
    model, machine = facts.models["qwen2.5-7b"].quantized("Q4_K_M"), facts.machine("mac-mini-m4-32gb").machine
    found = longest_prompt(model, machine, 2000, cached_percent=cached, chunk_tokens=512).datasheet
    assert found is not None

    def floor(tokens: float) -> Any:
        return prefill_floor_ms(
            model, machine, int(tokens), cached_tokens=int(tokens) * cached // 100, chunk_tokens=512
        ).datasheet

    assert floor(found.low).high <= 2000 < floor(found.low + 1).high
    assert floor(found.high).low <= 2000 < floor(found.high + 1).low


def test_the_sums_of_a_model_are_its_layers() -> None:
    """DeepSeek-V3 keeps a latent of 512 + 64 in each of 61 layers; Gemma 3 12B five local layers to a global one."""
    models = load_facts(ROOT / "data" / "facts").models
    latent, gemma = (model_coefficients(models[name].shape).kept for name in ("deepseek-v3", "gemma-3-12b"))

    assert latent is not None
    assert latent.global_heads == (KeptHeads(61, 512 + 64, 0),)
    assert gemma is not None
    assert (gemma.global_heads, gemma.local_heads) == ((KeptHeads(8 * 8, 256, 256),), (KeptHeads(40 * 8, 256, 256),))
    assert weights_or_none(models["qwen3.5-27b"].shape) is None
