"""Memory as it fills: tokens kept against bytes, by KV type; and what one token costs, model by model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import INK, MUTED
from roofbook.theory.shapes import Range
from roofbook.units import GIB, KIB
from roofbook.words import Words

_KV_COLOURS: Final = ("var(--chart-2)", "var(--chart-1)", "var(--chart-4)")
"""Of the KV types from the largest to the smallest."""


@dataclass(frozen=True)
class Filling:
    """One KV type: what all is held before the first token, and what each token adds; bytes."""

    kv_type: str
    fixed_bytes: Range
    token_bytes: float

    def full_at(self, wall: "Wall") -> tuple[float, float]:
        """Return at how many tokens a machine is full: at least, and at most."""
        limit = wall.limit_bytes + Range.of(wall.spared_bytes)
        low, high = limit.low - self.fixed_bytes.high, limit.high - self.fixed_bytes.low
        return max(0.0, low) / self.token_bytes, max(0.0, high) / self.token_bytes


@dataclass(frozen=True)
class Wall:
    """A machine's limit."""

    machine: str
    limit_bytes: Range
    spared_bytes: float = 0.0
    """Of the weights that stay in the host's memory: a card does not hold the input embedding."""


@dataclass(frozen=True)
class TokenCost:
    """What one token adds in one model; *told* ones are those the text compares."""

    model: str
    token_bytes: float
    sharing: str
    """How its heads share keys and values, in words."""
    params: float
    told: bool


def filling_figure(
    *, words: Words, title: str, model: str, fillings: Sequence[Filling], walls: Sequence[Wall], tokens: int
) -> Figure:
    """Return how memory fills with the tokens of all requests together, up to *tokens*, below the *walls*."""
    top = max((wall.limit_bytes.high for wall in walls), default=0.0) * 1.12 / GIB
    x = alt.X("tokens").type("quantitative").title(words.say("Tokens kept, of all requests together"))
    x = x.scale(nice=False, domain=[0, tokens]).axis(format=",~s", tickCount=7)
    y = alt.Y("gib").type("quantitative").title(words.say("Memory needed (GiB)"))
    y = y.scale(nice=False, domain=[0, top]).axis(format=",~r", tickCount=6)
    return Figure(
        name="filling",
        title=title,
        description=words.say(
            "Chart for %(model)s. Memory grows in a straight line with the tokens kept, steepest in %(steepest)s. "
            "%(title)s.",
            model=model,
            steepest=max(fillings, key=lambda one: one.token_bytes).kv_type if fillings else "",
            title=title,
        ),
        caption=words.say(
            "Each band starts at the weights and the reserve, which are there before the first token, and is as wide "
            "as the reserve is uncertain. The dots are where it meets a machine's limit: full at the earliest, and at "
            "the latest; a card's lie a little farther right, because the input embedding stays in host memory. What "
            "lies outside stands in the table."
        ),
        legend=_filling_legend(words, fillings, walls),
        table=_filling_table(words, fillings, walls),
        spec=alt.layer(*_wall_layers(walls, tokens, x, y), *_bands(fillings, walls, tokens, x, y, words)).to_dict(),
    )


def token_figure(*, words: Words, title: str, costs: Sequence[TokenCost], kv_type: str) -> Figure:
    """Return one bar a model: the KiB that a token adds to its cache."""
    bars = [
        {
            "model": cost.model,
            "kib": cost.token_bytes / KIB,
            "told": cost.told,
            "label": words.significant(cost.token_bytes / KIB),
            "sharing": cost.sharing,
        }
        for cost in costs
    ]
    y = alt.Y("model").type("nominal").title(None).sort(None)  # pyright: ignore[reportArgumentType] - None keeps the order
    y = y.axis(labelColor=INK, titleY=-4)
    x = alt.X("kib").type("quantitative").title(words.say("One token's keys and values (KiB, %(type)s)", type=kv_type))
    x = x.scale(nice=False, domain=[0, max((cost.token_bytes for cost in costs), default=KIB) / KIB * 1.18]).axis(
        tickCount=5
    )
    chart = alt.Chart(alt.InlineData(values=bars))
    told = [("model", words.say("Model")), ("label", words.say("KiB a token")), ("sharing", words.say("Heads"))]
    return Figure(
        name="token",
        title=title,
        description=words.say(
            "Bar chart of %(models)s models. %(title)s.", models=words.number(len(bars)), title=title
        ),
        caption=words.say(
            "Keys and values of all layers together; layers that look at a window only add nothing beyond it."
        ),
        legend=(
            Key("dot", "var(--chart-1)", words.say("The two that are compared")),
            Key("band", MUTED, words.say("Others")),
        ),
        table=_token_table(words, costs),
        spec=alt.layer(
            chart.mark_bar(height={"band": 0.62}).encode(
                x=x,
                y=y,
                fill=alt.when(alt.datum.told).then(alt.value("var(--chart-1)")).otherwise(alt.value(MUTED)),
                opacity=alt.when(alt.datum.told).then(alt.value(1)).otherwise(alt.value(0.45)),
                tooltip=[alt.Tooltip(field).type("nominal").title(name) for field, name in told],
            ),
            chart.mark_text(align="left", dx=6, fontSize=12).encode(x=x, y=y, text="label:N", fill=alt.value(INK)),
        ).to_dict(),
    )


def _wall_layers(walls: Sequence[Wall], tokens: int, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    layers: list[alt.Chart] = []
    highest = max((wall.limit_bytes.high for wall in walls), default=0.0)
    for wall in walls:
        low, high = wall.limit_bytes.low / GIB, wall.limit_bytes.high / GIB
        ends = [{"tokens": at, "low": low, "gib": high, "name": wall.machine} for at in (0, tokens)]
        drawn = alt.Chart(alt.InlineData(values=ends))
        if low < high:
            layers.append(
                drawn.mark_area(opacity=0.14).encode(
                    x=x, y=alt.Y("low").type("quantitative"), y2="gib", fill=alt.value(MUTED)
                )
            )
        layers.append(drawn.mark_line(strokeWidth=1, strokeDash=[4, 3]).encode(x=x, y=y, stroke=alt.value(MUTED)))
        # The lines leave the lower right corner and the upper left one free.
        first = wall.limit_bytes.high == highest
        layers.append(
            alt.Chart(alt.InlineData(values=ends[:1] if first else ends[1:]))
            .mark_text(align="left" if first else "right", baseline="bottom", dx=3 if first else 0, dy=-4, fontSize=12)
            .encode(x=x, y=y, text="name:N", fill=alt.value(MUTED))
        )
    return layers


def _bands(
    fillings: Sequence[Filling], walls: Sequence[Wall], tokens: int, x: alt.X, y: alt.Y, words: Words
) -> list[alt.Chart]:
    layers: list[alt.Chart] = []
    told = [
        ("kv_type", words.say("KV cache type")),
        ("machine", words.say("Machine")),
        ("told_tokens", words.say("Tokens kept")),
        ("told_gib", words.say("Memory (GiB)")),
    ]
    for filling, hue in zip(fillings, _KV_COLOURS, strict=False):
        ends = [
            {"tokens": at, "low": edge.low / GIB, "gib": edge.high / GIB}
            for at in (0, tokens)
            for edge in [filling.fixed_bytes + at * filling.token_bytes]
        ]
        layers.append(
            alt.Chart(alt.InlineData(values=ends))
            .mark_area(opacity=0.45, clip=True)
            .encode(x=x, y=alt.Y("low").type("quantitative"), y2="gib", fill=alt.value(hue))
        )
        full = [point for wall in walls for point in _full(filling, wall, words) if point["tokens"] <= tokens]
        layers.append(
            alt.Chart(alt.InlineData(values=full))
            .mark_point(size=45, opacity=1, filled=True, clip=True)
            .encode(
                x=x,
                y=y,
                fill=alt.value(hue),
                tooltip=[alt.Tooltip(field).type("nominal").title(title) for field, title in told],
            )
        )
    return layers


def _full(filling: Filling, wall: Wall, words: Words) -> list[dict[str, Any]]:
    """Return where a machine is full, at the earliest and at the latest."""
    limits = (wall.limit_bytes.low, wall.limit_bytes.high)
    return [
        {
            "tokens": at,
            "gib": limit / GIB,
            "kv_type": filling.kv_type,
            "machine": wall.machine,
            "told_tokens": words.number(at),
            "told_gib": words.significant(limit / GIB),
        }
        for at, limit in zip(filling.full_at(wall), limits, strict=True)
    ]


def _filling_legend(words: Words, fillings: Sequence[Filling], walls: Sequence[Wall]) -> tuple[Key, ...]:
    keys = [
        Key("band", hue, words.say("KV cache %(type)s", type=filling.kv_type))
        for filling, hue in zip(fillings, _KV_COLOURS, strict=False)
    ]
    if walls:
        keys.append(Key("dashed", MUTED, words.say("What the GPU may use")))
    if any(wall.limit_bytes.low < wall.limit_bytes.high for wall in walls):
        keys.append(Key("band", MUTED, words.say("From macOS 15 and older to macOS 26")))
    return tuple(keys)


def _filling_table(words: Words, fillings: Sequence[Filling], walls: Sequence[Wall]) -> Table:
    columns = (
        Column("kv_type", words.say("KV cache type"), None),
        Column("token_bytes", words.say("Bytes a token"), 1),
        Column("machine", words.say("Machine"), None),
        Column("tokens_low", words.say("Full at tokens, at least")),
        Column("tokens_high", words.say("at most")),
    )
    rows = [
        (
            filling.kv_type,
            filling.token_bytes,
            wall.machine,
            *filling.full_at(wall),
        )
        for filling in fillings
        for wall in walls
    ]
    return Table(columns, tuple(rows))


def _token_table(words: Words, costs: Sequence[TokenCost]) -> Table:
    columns = (
        Column("model", words.say("Model"), None),
        Column("params", words.say("Parameters (10⁹)"), 2),
        Column("token_bytes", words.say("Bytes a token")),
        Column("sharing", words.say("Heads"), None),
    )
    return Table(columns, tuple((cost.model, cost.params / 1e9, cost.token_bytes, cost.sharing) for cost in costs))
