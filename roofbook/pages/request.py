"""A subject's single requests by their parts: a figure that prose places."""

import numpy as np

from roofbook.analysis.latency import Point
from roofbook.charts.cache import Drawn, FigureCache
from roofbook.charts.request import RequestParts, request_figure
from roofbook.pages.subjects import SubjectView
from roofbook.words import Words


def drawn(view: SubjectView, words: Words, figures: FigureCache) -> list[Drawn]:
    """Return the figure of the subject's baseline requests; none where no point has all three times."""
    requests = [parts for point in view.points if (parts := _parts(view, point))]
    if not requests:
        return []
    requests.sort(key=lambda parts: parts.prompt_tokens)
    return [figures.draw(request_figure, words, requests=requests, colour=view.colour)]


def _parts(view: SubjectView, point: Point) -> RequestParts | None:
    prefill, ttft, e2e = point.prefill.median, point.ttft.median, point.e2e.median
    if point.kind != "baseline" or prefill is None or ttft is None or e2e is None or point.prompt_tokens is None:
        return None
    if not 0 <= prefill <= ttft <= e2e:
        return None
    written = [
        row["output_tokens"]
        for row in view.subject.records
        if row.get("point") == point.point
        and row.get("experiment") == point.experiment
        and row.get("output_tokens") is not None
    ]
    tokens = float(np.median(written)) if written else None
    return RequestParts(point.prompt_tokens, prefill, ttft, e2e, tokens, point.ttft.n)
