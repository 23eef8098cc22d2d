"""The layers of a model from what sources say about them as a whole."""

from roofbook.theory.shapes import Layer, LayerKind


def kinds_of_pattern(every: int, count: int) -> tuple[LayerKind, ...]:
    """Return *count* kinds of which every *every*-th attends to all tokens and the others to a window."""
    return tuple("global" if (index + 1) % every == 0 else "local" for index in range(count))


def attention(
    kind: LayerKind,
    heads: int | None,
    kv_heads: int | None,
    key_dim: int | None,
    value_dim: int | None,
    *,
    experts: bool = False,
) -> Layer:
    """Return a layer with its heads, which a recurrent one does not have."""
    if kind == "recurrent":
        return Layer("recurrent", experts=experts)
    return Layer(kind, heads, kv_heads, key_dim, value_dim, experts)
