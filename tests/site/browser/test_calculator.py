"""The calculators in a real browser: they say what theory says, to the digit, and are kind to whoever uses them."""

import functools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from roofbook.analysis.prefill import prompt_budget
from roofbook.analysis.sharing import with_cached_share
from roofbook.commands import answer as terminal
from roofbook.commands.answer import Answer, Question, answer
from roofbook.errors import EstimateError
from roofbook.facts import Facts, load_facts
from roofbook.pages.calculator_data import UNKNOWN, Choices, choices
from roofbook.pages.subjects import subject_views
from roofbook.record import read_runs
from roofbook.theory import roofline
from roofbook.theory.kv import cache_bytes
from roofbook.theory.memory import Budget, sequences_that_fit
from roofbook.theory.prompts import longest_prompt
from roofbook.theory.shapes import Machine, Model, Range
from roofbook.theory.weights import weights
from roofbook.units import GIB
from roofbook.words import load_words

pytestmark = pytest.mark.browser

POINTS = 500
CHANGES = 50
KV_TYPES = ("f16", "q8_0", "q5_1", "q4_0", "fp8", UNKNOWN)
LANGUAGES = pytest.mark.parametrize("folder", ["", "en/"], ids=["ko", "en"])
PHONE = {"width": 375, "height": 800}

ASK = """points => points.map(point => {
    const {data, theory} = roofbookCalculator, model = data.models[point.model];
    return theory[point.ask]({
        ...point, model, weights: model.weights[point.quantization] || null, machine: data.machines[point.machine],
        layout: data.servers[point.server].layout, law: point.law ? data.subjects[point.law].law : null,
    });
})"""


@dataclass(frozen=True)
class Case:
    """One choice of everything, as the page names it and as theory takes it."""

    named: dict[str, Any]
    model: Model
    machine: Machine

    @property
    def kv_type(self) -> str | None:
        return None if self.named["kv"] == UNKNOWN else self.named["kv"]


@dataclass(frozen=True)
class Offered:
    """What the page offers."""

    facts: Facts
    told: Choices

    def chunk(self, case: Case) -> int | None:
        return 512 if self.facts.runtimes[case.named["server"]].kv_layout == "slots" else None

    def draw(self, dice: random.Random, **more: Any) -> Case:
        """Return a random choice of model, quantization, machine, server and KV type."""
        choice, shapes = dice.choice(list(self.told.models.items()))
        quantization = dice.choice(list(shapes))
        machine_choice, machine = dice.choice(list(self.told.machines.items()))
        named = {
            "model": choice.id, "quantization": quantization, "machine": machine_choice.id,
            "server": dice.choice(list(self.facts.runtimes)), "kv": dice.choice(KV_TYPES),
        }  # fmt: skip
        return Case({**named, **more}, shapes[quantization], machine)


@pytest.fixture(scope="module")
def offered(report: Path) -> Offered:
    facts = load_facts(report / "data" / "facts")
    views = subject_views(read_runs(report / "data" / "measured"), facts)
    return Offered(facts, choices(facts, views, load_words(report / "templates" / "locale", "en")))


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same weights are asked for thousands of times here."""
    kept = functools.lru_cache(maxsize=1024)(weights)
    for module in (roofline, terminal):
        monkeypatch.setattr(module, "weights", kept)


def likely(dice: random.Random, low: int, high: int) -> int:
    """Return a whole number whose magnitude is as likely as any other."""
    return round(math.exp(dice.uniform(math.log(low), math.log(high))))


def ends(found: Range | None) -> list[float] | None:
    return None if found is None else [found.low, found.high]


def same(mine: Any, theirs: Any) -> bool:
    """Compare the browser's values with ours: infinite ends included, floats within 1e-9."""
    if mine is None or theirs is None:
        return mine is theirs
    return len(mine) == len(theirs) and all(
        a == b or math.isclose(a, b, rel_tol=1e-9) for a, b in zip(mine, theirs, strict=True)
    )


def _listed(value: float | None) -> list[float] | None:
    return None if value is None else [value]


def browser_says(read: Any, address: str, cases: Sequence[Case], ask: str) -> list[Any]:
    with read(address) as reader:
        reader.open(address + "en/calculator.html")
        return reader.page.evaluate(ASK, [{"ask": ask, **case.named} for case in cases])


# ---- to the digit


def question(case: Case, offered: Offered) -> Question:
    reserve = case.named["reserve"]
    return Question(
        model=case.model,
        machine=case.machine,
        runtime=offered.facts.runtime(case.named["server"]),
        kv_type=case.kv_type,
        context_tokens=case.named["context"],
        users=case.named["users"],
        reserve_bytes=None if reserve is None else Range.of(reserve),
        macos=int(case.named["macos"]) if case.named["macos"] else None,
        mac_limits=offered.facts.mac_limits,
    )


def memory_case(dice: random.Random, offered: Offered) -> Case:
    return offered.draw(
        dice,
        context=likely(dice, 1, 300_000),
        users=likely(dice, 1, 500),
        macos=dice.choice(["", "15", "26"]),
        reserve=dice.choice([None, None, 0, 3.5 * GIB]),
    )


def unlike(told: Any, expected: Answer) -> list[str]:
    """Return the names of the figures in which the browser differs from *expected*; counts must agree exactly."""
    budget = expected.budget
    compared: dict[str, tuple[Any, Any]] = {
        "limit": (told["limit"], ends(expected.limit.limit_bytes)),
        "reserve": (told["reserve"], ends(expected.reserve_bytes)),
        "token": (told["token"], ends(expected.token_kv_bytes)),
        "request": (told["request"], ends(expected.request_kv_bytes)),
        "weights": (told["weights"], None if budget is None else ends(budget.weights_bytes)),
        "caches": (told["caches"], None if budget is None else ends(budget.kv_bytes)),
        "needed": (told["needed"], None if budget is None else ends(budget.needed_bytes)),
        "spare": (told["spare"], None if budget is None else ends(budget.spare_bytes)),
        "crossover": (told["crossover"], None if expected.crossover is None else ends(expected.crossover.whole)),
    }
    exact: dict[str, tuple[Any, Any]] = {
        "sequences": (told["sequences"], ends(expected.sequences)),
        "fits": (told["fits"], expected.fits),
        "scarcity": (told["scarcity"], expected.scarcity),
        "counted": (told["counted"], expected.counted),
        "basis": (told["limit_basis"], expected.limit.basis),
    }
    return [name for name, pair in compared.items() if not same(*pair)] + [
        name for name, (mine, theirs) in exact.items() if mine != theirs
    ]


@pytest.mark.timeout(300)
def test_the_memory_budget_is_the_terminals(address: str, read: Any, offered: Offered) -> None:
    """500 random questions: every figure as ``python -m roofbook budget`` has it, the counts exactly."""
    dice = random.Random(1)
    cases: list[Case] = []
    expected: list[Answer] = []
    while len(cases) < POINTS:
        case = memory_case(dice, offered)
        cases.append(case)
        expected.append(answer(question(case, offered)))
    told = browser_says(read, address, cases, "memory")

    wrong = [(case.named, names) for case, mine, ours in zip(cases, told, expected, strict=True)
             if (names := unlike(mine, ours))]  # fmt: skip
    assert wrong == []
    assert sum(one.sequences is not None and 0 < one.sequences.low < math.inf for one in expected) > 200
    assert {one.fits for one in expected} == {True, False, None}
    assert {one.scarcity for one in expected} >= {"context", "weights", "memory", "arithmetic"}


@pytest.mark.timeout(300)
def test_the_memory_count_changes_where_theorys_does(address: str, read: Any, offered: Offered) -> None:
    """Fifty contexts at which one request fewer fits: the browser agrees there, and one token further."""
    dice = random.Random(2)
    cases: list[Case] = []
    expected: list[Answer] = []
    while len(cases) < 2 * CHANGES:
        case = memory_case(dice, offered)
        asked = question(case, offered)
        start = answer(asked)
        if start.sequences is None or start.budget is None or not 1 <= start.sequences.low < 1000:
            continue
        at, beyond = case.named["context"], case.named["context"] * 4

        def fitting(context: int, budget: Budget = start.budget, asked: Question = asked) -> float:
            return sequences_that_fit(budget, asked.model, context, asked.kv_type, asked.cells).low

        most = fitting(at)
        if fitting(beyond) == most:
            continue  # a window or a state that no longer context changes
        while beyond - at > 1:
            middle = (at + beyond) // 2
            at, beyond = (middle, beyond) if fitting(middle) == most else (at, middle)
        pair = [Case({**case.named, "context": context}, case.model, case.machine) for context in (at, beyond)]
        cases += pair
        expected += [answer(question(one, offered)) for one in pair]
        assert expected[-2].sequences != expected[-1].sequences
    told = browser_says(read, address, cases, "memory")

    assert [(case.named, names) for case, mine, ours in zip(cases, told, expected, strict=True)
            if (names := unlike(mine, ours))] == []  # fmt: skip


def prompt_case(dice: random.Random, offered: Offered) -> Case:
    law = next(one.slug for one in offered.told.subjects if one.curve.chosen is not None)
    return offered.draw(
        dice, target_ms=dice.uniform(50, 60) * 10 ** dice.uniform(0, 2.5), cached_percent=dice.randrange(100), law=law
    )


@pytest.mark.timeout(300)
def test_the_prompt_budget_is_theorys_and_the_fits(address: str, read: Any, offered: Offered) -> None:
    """500 random targets and cached shares: the bounds by arithmetic exactly, the law and its band within 1e-9."""
    dice = random.Random(3)
    cases = [prompt_case(dice, offered) for _ in range(POINTS)]
    told = browser_says(read, address, cases, "prompts")
    wrong: list[Any] = []
    for case, mine in zip(cases, told, strict=True):
        curve = next(one.curve for one in offered.told.subjects if one.slug == case.named["law"])
        assert curve.chosen is not None
        assert curve.longest is not None
        law = with_cached_share(curve.chosen.fit, case.named["cached_percent"] / 100)
        budget = prompt_budget(law, case.named["target_ms"], curve.overhead_ms or 0.0, curve.longest.tokens)
        for edge in ("mid", "low", "high"):
            mine_at, theirs = mine["law"][edge], getattr(budget, edge)
            if not same(_listed(mine_at), _listed(theirs)):
                wrong.append((case.named, edge, mine_at, theirs))
        try:
            bound = longest_prompt(
                case.model, case.machine, case.named["target_ms"], cached_percent=case.named["cached_percent"],
                chunk_tokens=offered.chunk(case),
            )  # fmt: skip
        except EstimateError:
            bound = roofline.Bound(None, None)
        if mine["datasheet"] != ends(bound.datasheet) or mine["measured"] != ends(bound.measured):
            wrong.append((case.named, mine, bound))

    assert wrong == []
    assert len({mine["law"]["mid"] for mine in told}) > POINTS / 2


@pytest.mark.timeout(300)
def test_the_prompt_count_changes_where_theorys_does(address: str, read: Any, offered: Offered) -> None:
    """Fifty targets that one more token just meets: it counts at the target, and not at the next smaller number."""
    dice = random.Random(4)
    cases: list[Case] = []
    expected: list[float] = []
    while len(cases) < 2 * CHANGES:
        case = prompt_case(dice, offered)
        percent, chunk = case.named["cached_percent"], offered.chunk(case)

        def count(target_ms: float, case: Case = case, percent: int = percent, chunk: int | None = chunk) -> Any:
            return longest_prompt(
                case.model, case.machine, target_ms, cached_percent=percent, chunk_tokens=chunk
            ).datasheet

        try:
            found = count(case.named["target_ms"])
        except EstimateError:
            continue
        if found is None or not 0 < found.high < 100_000:
            continue
        tokens = int(found.high) + 1
        floor = roofline.prefill_floor_ms(
            case.model, case.machine, tokens, cached_tokens=tokens * percent // 100, chunk_tokens=chunk
        ).datasheet
        assert floor is not None
        for target_ms in (floor.low, math.nextafter(floor.low, 0)):
            cases.append(Case({**case.named, "target_ms": target_ms}, case.model, case.machine))
            expected.append(count(target_ms).high)
        assert expected[-2] > expected[-1]
    told = browser_says(read, address, cases, "prompts")

    assert [mine["datasheet"][1] for mine in told] == expected


def test_the_ceilings_are_theorys(address: str, read: Any, offered: Offered) -> None:
    """500 random questions: decode, prefill, the crossing and one step, against both denominators."""
    dice = random.Random(5)
    cases = [
        offered.draw(dice, prompt=likely(dice, 1, 200_000), batch=likely(dice, 1, 500)) for _ in range(POINTS)
    ]  # fmt: skip
    told = browser_says(read, address, cases, "ceilings")
    wrong: list[Any] = []
    for case, mine in zip(cases, told, strict=True):
        try:
            ours = _ceilings(case, offered)
        except EstimateError:
            ours = None
        if ours is None or mine is None:
            if ours is not mine:
                wrong.append((case.named, mine))
            continue
        wrong += [(case.named, name, mine_of, theirs) for name, theirs in ours.items()
                  if not same(mine_of := _at(mine, name), ends(theirs))]  # fmt: skip

    assert wrong == []
    assert sum(mine is not None and mine["measured"]["prefill_ms"] is not None for mine in told) > 20


def _at(found: Any, name: str) -> Any:
    for part in name.split("."):
        found = found[part]
    return found


def _ceilings(case: Case, offered: Offered) -> dict[str, Range | None]:
    model, machine, prompt, batch = case.model, case.machine, case.named["prompt"], case.named["batch"]
    kv = {"kv_type": case.kv_type}
    alone = roofline.decode_ceiling(model, machine, **kv)
    full = roofline.decode_ceiling(model, machine, context_tokens=prompt, **kv)
    together = roofline.decode_ceiling(model, machine, context_tokens=prompt, batch=batch, **kv)
    floor = roofline.prefill_floor_ms(model, machine, prompt, chunk_tokens=offered.chunk(case))
    crossing = roofline.crossover_batch(model, machine, context_tokens=prompt, **kv)
    return {
        "step_bytes": roofline.step_bytes(model, context_tokens=prompt, batch=batch, **kv),
        "step_flops": roofline.decode_flops(model, prompt, batch),
        "prefill_flops": roofline.prefill_work(model, prompt, chunk_tokens=offered.chunk(case)).total,
        "datasheet.alone": alone.datasheet, "measured.alone": alone.measured,
        "datasheet.alone_full": full.datasheet, "measured.alone_full": full.measured,
        "datasheet.together": together.datasheet, "measured.together": together.measured,
        "datasheet.prefill_ms": floor.datasheet, "measured.prefill_ms": floor.measured,
        "datasheet.crossover": crossing.datasheet, "measured.crossover": crossing.measured,
        "crossover": crossing.whole,
    }  # fmt: skip


def test_the_field_limits_keep_every_count_exact(offered: Offered) -> None:
    """Below 2^53 a double holds every whole number: the cells of the longest context, times a million requests."""
    assert 10_000_000 * 2**20 < 2**53
    largest = max(offered.told.models.values(), key=lambda shapes: len(next(iter(shapes.values())).layers or ()))
    assert cache_bytes(next(iter(largest.values())), 4096, "f16").high < 2**53


# ---- as people use it


def answers(reader: Any) -> list[str]:
    return [reader.page.locator(f"#{name}-result .rb-result__answer").inner_text()
            for name in ("memory", "prompt", "ceiling")]  # fmt: skip


@LANGUAGES
def test_the_page_opens_with_the_subject_and_its_answers(address: str, read: Any, folder: str) -> None:
    """The newest subject's model, machine, server and KV type; three answers in its language."""
    with read(address) as reader:
        reader.open(f"{address}{folder}calculator.html")
        chosen = {name: reader.page.locator(f"#calc-{name}").input_value()
                  for name in ("model", "weights", "machine", "server", "kv")}  # fmt: skip

        assert chosen == {"model": "qwen2.5-7b", "weights": "Q4_K_M", "machine": "mac-mini-m4-32gb",
                          "server": "ollama", "kv": "q8_0"}  # fmt: skip
        starts = ("Yes: ", "", "") if folder else ("올라감: ", "실측 기준 ", "혼자일 때 초당 ")
        assert [said.startswith(start) for said, start in zip(answers(reader), starts, strict=True)] == [True] * 3
        assert "undefined" not in reader.page.locator("article").inner_text()
        assert "NaN" not in reader.page.locator("article").inner_text()


def test_the_keyboard_is_enough(address: str, read: Any) -> None:
    """From the model to the number of users by Tab, letters, digits and arrows; the answer follows each key."""
    with read(address) as reader:
        reader.open(f"{address}en/calculator.html")
        before = answers(reader)
        reader.page.locator("#calc-subject").focus()
        reader.page.keyboard.press("Tab")
        reader.page.keyboard.type("Llama 3.1 70")
        assert reader.page.locator("#calc-model").input_value() == "llama-3.1-70b"
        assert answers(reader)[0].startswith("No: ")
        assert answers(reader)[1].endswith("nobody has measured this combination here")
        assert "This model does not fit this machine" in reader.page.locator("#prompt-result").inner_text()

        for _ in range(6):  # machine, weights, server, KV type, the heading's link, context
            reader.page.keyboard.press("Tab")
        assert reader.page.evaluate("document.activeElement.name") == "context"
        reader.page.keyboard.press("Tab")
        reader.page.keyboard.press("ArrowUp")
        assert reader.page.locator("#calc-users").input_value() == "2"
        assert "caches of 2 requests" in reader.page.locator("#memory-result").inner_text()
        assert answers(reader) != before


@pytest.mark.parametrize(
    ("name", "typed", "said"),
    [
        ("context", "0", "A whole number from 1 to 10,000,000, please."),
        ("context", "", "A whole number from 1 to 10,000,000, please."),
        ("users", "1.5", "A whole number from 1 to 100,000, please."),
        ("target", "0.01", "A number from 0.05 to 600, please."),
        ("cached", "100", "A whole number from 0 to 99, please."),
        ("batch", "-1", "A whole number from 1 to 10,000, please."),
        ("reserve", "1001", "A number from 0 to 1,000, please."),
    ],
)
def test_what_is_out_of_range_is_told_beside_the_field(
    address: str, read: Any, name: str, typed: str, said: str
) -> None:
    """The complaint stands at the field and names the range; no answer is shown for a number that is none."""
    with read(address) as reader:
        reader.open(f"{address}en/calculator.html")
        before = answers(reader)
        old = reader.page.locator(f"#calc-{name}").input_value()
        reader.page.fill(f"#calc-{name}", typed)

        assert reader.page.locator(f"#calc-{name}-problem").inner_text() == said
        assert reader.page.locator(f"#calc-{name}").get_attribute("aria-invalid") == "true"
        assert "Mend the marked field, and the answer comes back." in answers(reader)

        reader.page.fill(f"#calc-{name}", old)
        assert reader.page.locator(f"#calc-{name}").get_attribute("aria-invalid") is None
        assert answers(reader) == before


@pytest.mark.parametrize("place", ["served", "folder"])
def test_the_address_keeps_the_state(site: Path, address: str, read: Any, place: str) -> None:
    """It survives a reload and the language switch, on a server and from a folder; the anchor stays."""
    root = address if place == "served" else f"file://{site}/"
    with read(root) as reader:
        reader.open(f"{root}en/calculator.html#prompt-calculator")
        reader.page.select_option("#calc-machine", "desktop-rtx-4060-ti-8gb")
        reader.page.select_option("#calc-kv", "q4_0")
        reader.page.fill("#calc-context", "12345")
        reader.page.fill("#calc-cached", "80")
        said, url = answers(reader), reader.page.url
        assert url.endswith("#prompt-calculator")
        assert "context=12345" in url

        reader.page.reload()
        assert answers(reader) == said

        reader.page.click("a[data-twin]")
        reader.page.wait_for_url(f"{root}calculator.html?*")
        assert reader.page.locator("html").get_attribute("lang") == "ko"
        assert reader.page.locator("#calc-context").input_value() == "12345"
        assert reader.page.locator("#calc-machine").input_value() == "desktop-rtx-4060-ti-8gb"
        assert reader.page.locator("#calc-kv").input_value() == "q4_0"
        assert reader.page.url.endswith("#prompt-calculator")

        reader.page.click("a[data-twin]")
        reader.page.wait_for_url(f"{root}en/calculator.html?*")
        assert answers(reader) == said


def test_an_address_with_an_unknown_name_says_so(address: str, read: Any) -> None:
    """What is not offered is told at the field, as text whatever it holds; so is a context that is no number."""
    with read(address) as reader:
        reader.open(f"{address}en/calculator.html?model=<img src=x onerror=alert(1)>&machine=toString&context=many")

        assert "<img src=x" in reader.page.locator("#calc-model-problem").inner_text()
        assert "'toString'" in reader.page.locator("#calc-machine-problem").inner_text()
        assert (
            reader.page.locator("#calc-context-problem").inner_text() == "A whole number from 1 to 10,000,000, please."
        )
        assert reader.page.locator("#calc-model").input_value() == "qwen2.5-7b"


@LANGUAGES
def test_a_subjects_page_leads_here_with_the_subject_chosen(site: Path, address: str, read: Any, folder: str) -> None:
    """The link below a subject's title opens the calculators with its slug."""
    page = next(path.relative_to(site).as_posix() for path in site.glob("mac-mini*/prefill.html"))
    with read(address) as reader:
        reader.open(f"{address}{folder}{page}")
        reader.page.click(".rb-facts a[href*='calculator.html?subject=']")
        reader.page.wait_for_url(f"{address}{folder}calculator.html?subject=*")

        assert reader.page.locator("#calc-subject").input_value() == page.split("/")[0]


@LANGUAGES
def test_a_phone_shows_it_whole(address: str, read: Any, folder: str) -> None:
    """At 375 px nothing scrolls sideways, not even a table in its box."""
    with read(address, viewport=PHONE) as reader:
        reader.open(f"{address}{folder}calculator.html?users=100000&context=10000000&kv=unknown&batch=10000")

        assert reader.width() == 375
        assert reader.page.eval_on_selector_all(
            ".rb-result .rb-table", "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
        ) == 0  # fmt: skip


def test_no_answer_moves_when_the_script_has_run(address: str, read: Any) -> None:
    """The forms are there from the start: the layout shifts by less than a hundredth."""
    with read(address) as reader:
        reader.page.add_init_script(
            "window.shifts = 0; new PerformanceObserver(list => list.getEntries().forEach(one => "
            "{ window.shifts += one.value; })).observe({type: 'layout-shift', buffered: true});"
        )
        reader.open(f"{address}en/calculator.html")
        reader.page.wait_for_timeout(500)

        assert reader.page.evaluate("window.shifts") < 0.01


@LANGUAGES
def test_without_scripts_there_is_a_table_of_answers(address: str, read: Any, folder: str) -> None:
    """The first questions' answers, a word that scripts are needed, and no dead form."""
    with read(address, javascript=False) as reader:
        reader.open(f"{address}{folder}calculator.html")

        assert reader.page.locator(".rb-default tbody tr").count() == 9
        assert [reader.page.locator(".rb-default").nth(i).is_visible() for i in range(3)] == [True] * 3
        assert not any(reader.page.locator("form.rb-calc, .rb-calc form").nth(i).is_visible() for i in range(4))
        said = reader.page.locator("article").inner_text()
        assert ("The calculators need scripts" if folder else "계산기에는 스크립트가 필요") in said
