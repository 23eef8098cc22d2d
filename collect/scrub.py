"""The one scrubber: every text from outside passes it before it is kept, so that a file is safe to publish.

It takes out keys, user names, home paths, host names, serial numbers and mail addresses. What it knows about this
machine (who runs it, what it is called, the keys in its environment) it takes out wherever it stands; the rest goes by
form. It errs on the side of taking out.
"""

import contextlib
import getpass
import os
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, cast

KEY, USER, HOST, ID = "<key>", "<user>", "<host>", "<id>"

# The rules look at a line from each of its words on: a megabyte without a space would take them for ever.
_LONGEST: Final = 4000

_LONGEST_WORD: Final = 512  # of what a cut may have left half of
_DEEPEST: Final = 50

MAX_LINE: Final = 300
"""A fact is a word or a sentence; what is longer is cut, with an ellipsis."""

# Names that say nothing about a person, and that stand in ordinary sentences, product and model names.
_COMMON_NAMES: Final = frozenset(
    word
    for words in (
        "root user admin administrator ubuntu debian fedora runner vagrant nobody daemon system default guest test",
        "ec2-user localhost local host server mac macbook macmini linux windows desktop laptop node vm docker",
        "ollama llama vllm sglang mlx lmstudio qwen gemma mistral phi deepseek python gpu cpu",
    )
    for word in words.split()
)
_SHORTEST_NAME: Final = 3
_SHORTEST_SECRET: Final = 8  # a shorter one that is only called a secret may be a word of every sentence
# What people set where a server wants a key and does not look at it: taking it out would blot out ordinary words.
_NO_SECRETS: Final = frozenset(
    ("empty", "none", "null", "dummy", "test", "key", "x", "not-needed", "no-key", "lm-studio")
)
_SECRET_NAME: Final = re.compile(r"(?i)(api[-_]?key|apikey|token|secret|passw(or)?d|authorization|credential)")
_SECRET_VARIABLE: Final = re.compile(r"(?i)(key|token|secret|passw(or)?d|credential)")
# Keys of a JSON object that hold numbers of tokens, not secrets.
_TOKEN_COUNTS: Final = re.compile(r"(?i)(tokens|token_count|token_id|n_token|_token_|tokenizer|per_token)")

# Addresses of the programs that we look at: public, and useful in a message of theirs.
_PUBLIC_HOSTS: Final = ("github.com", "huggingface.co", "ollama.com", "lmstudio.ai")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0")

_CONTROL: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_RULES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        # keys by their prefix, and tokens of three parts
        (r"\b(?:sk|pk|rk|nvapi|glpat|gsk|xai)[-_][\w-]{12,}", KEY),
        (r"\b(?:hf_|gh[pousr]_|github_pat_|xox[abprs]-|AKIA|AIza)[\w-]{10,}", KEY),
        (r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+", KEY),
        (r"(?i)\b(bearer)\s+[^\s\"',;]{6,}", rf"\1 {KEY}"),
        (r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?)(?:(?:basic|bearer|token)\s+)?[^\s\"',;]+", rf"\1{KEY}"),
        # keys by what they are called: --api-key X, API_KEY=X, "password": "X", ?token=X
        (r"(?i)(--?(?:[\w-]*api[-_]?key|[\w-]*token|password|[\w-]*secret)[= ]+)(?!-)[^\s\"']+", rf"\1{KEY}"),
        (
            r"(?i)\b([\w-]*(?:api[-_]?key|apikey|(?:access|auth|hf|api)[-_]?token|secret(?:[-_]?key)?|passw(?:or)?d))"
            r"([\"']?\s*[:=]\s*[\"']?)[^\s\"',;&}]+",
            rf"\1\2{KEY}",
        ),
        (r"(?i)([?&](?:key|token|auth|sig|signature)=)[^\s&\"']+", rf"\1{KEY}"),
        # who is logged in where
        (r"(?i)([a-z][a-z0-9+.-]*://)[^\s/@\"']+@", r"\1"),
        (r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b", USER),
        # numbers of a machine or a device
        (r"(?i)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", ID),
        (r"\b[0-9A-F]{8}-[0-9A-F]{16}\b", ID),
        (r"(?i)\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", ID),
        (r"(?i)(\bserial(?:[ _-]?(?:number|no\.?))?(?:\s*\([^)\n]*\))?[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]+", rf"\1{ID}"),
        # home folders, and the folder that macOS makes for a user's temporary files
        (r"(?:/System/Volumes/Data)?/(?:home|Users)/[^/\s\"':,;)]+", "~"),
        (r"(?i)\b[a-z]:\\+Users\\+[^\\\s\"':,;)]+", "~"),
        (r"(?:/var)?/root(?=[/\s\"':,;)]|$)", "~"),
        (r"(?:/private)?/var/folders/\w+/[\w+]+", "<tmp>"),
    )
)
_URL_HOST: Final = re.compile(r"(?i)\b((?:https?|wss?|tcp)://)(\[[0-9a-f:]+\]|[^\s/:\"'?#]+)")
_LOCAL_NAME: Final = re.compile(r"(?i)\b[a-z0-9][\w-]*\.(?:local|lan|home|internal|localdomain|corp|intranet)\b")


@dataclass(frozen=True)
class Scrubber:
    """Takes out what goes by form, and the *users*, *hosts*, *homes* and *secrets* it was told."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """Secrets for certain, however short; a short one is taken out where it stands as a word."""

    @cached_property
    def _known(self) -> tuple[tuple[re.Pattern[str], str], ...]:
        keys = [key for key in self.keys if key.lower() not in _NO_SECRETS | _COMMON_NAMES]
        long = [name for name in (*self.secrets, *keys) if len(name) >= _SHORTEST_SECRET]
        short = [key for key in keys if len(key) < _SHORTEST_SECRET]
        return (
            *_literally(long, KEY),
            *((re.compile(rf"(?<![^\W_]){re.escape(key)}(?![^\W_])"), KEY) for key in short),
        )

    @cached_property
    def _rules(self) -> tuple[tuple[re.Pattern[str], str], ...]:
        # Homes that are known go first: a rule by form could cut one in two. Names go last.
        return (
            *_literally((name for name in self.homes if len(name) > 1), "~"),
            *_RULES,
            *_as_words(self.users, USER, ""),
            *_as_words(self.hosts, HOST, r"(?:\.[\w.-]+)?"),
        )

    def text(self, text: str) -> str:
        """Return *text* without anything personal; its lines stay, those that no person wrote are cut.

        Half a character, which JSON can hold and a file cannot, becomes a question mark.
        """
        return "\n".join(self._clean(_cut(line, _LONGEST)) for line in self._without_keys(text).split("\n"))

    def _without_keys(self, text: str) -> str:
        """Return *text* without the keys that are known; before anything is cut, for half a key is one still."""
        whole = _CONTROL.sub("", text.encode("utf-8", "replace").decode())
        for pattern, instead in self._known:
            whole = pattern.sub(instead, whole)
        return whole

    def _clean(self, text: str) -> str:
        for pattern, instead in self._rules:
            text = pattern.sub(instead, text)
        return _LOCAL_NAME.sub(HOST, _URL_HOST.sub(_public_host, text))

    def line(self, text: str) -> str:
        """Return *text* as one scrubbed line of at most MAX_LINE characters."""
        kept = " ".join(self.text(_cut(self._without_keys(text), 20 * MAX_LINE)).split())
        return kept if len(kept) <= MAX_LINE else kept[: MAX_LINE - 1] + "…"

    def json(self, value: Any, *, depth: int = 0) -> Any:
        """Return *value* with every text in it scrubbed; what stands under a secret's name is taken out whole.

        What is nested deeper than any fact is an ellipsis.
        """
        if isinstance(value, str):
            return self.text(value)
        if depth > _DEEPEST:
            return "…"
        if isinstance(value, Mapping):
            pairs = cast("Mapping[Any, Any]", value).items()
            return {
                self.text(str(name)): KEY if _is_secret(str(name), inner) else self.json(inner, depth=depth + 1)
                for name, inner in pairs
            }
        if isinstance(value, list | tuple):
            return [self.json(inner, depth=depth + 1) for inner in cast("Iterable[Any]", value)]
        return value

    def model_name(self, name: str) -> str:
        """Return a model's base name: of a path its last part, of a repository's or a registry's name all of it."""
        parts = [part for part in re.split(r"[/\\]+", name.strip()) if part]
        for part in parts:
            if part.startswith("models--"):  # the Hugging Face cache: .../models--ORG--NAME/snapshots/HASH
                return self.line(part.removeprefix("models--").replace("--", "/"))
        if not parts:
            return ""
        is_path = bool(re.match(r"[/\\~.]|[A-Za-z]:[/\\]|file:", name)) or name.lower().endswith(".gguf")
        is_registry = "." in parts[0] and len(parts) == 3
        return self.line(parts[-1] if is_path or (len(parts) > 2 and not is_registry) else "/".join(parts))

    def url(self, url: str) -> str:
        """Return scheme, host and port of *url*; a host that is not this machine becomes <host>."""
        return self.line(re.sub(r"(?i)^([a-z]+://[^/?#]*).*$", r"\1", url))


_keys: Final[set[str]] = set()


def keep_secret(key: str) -> None:
    """Let every text that this process keeps from now on be without *key*: the one that a plan names.

    The one thing here that is remembered: a key that had to be handed to each who writes would be forgotten once.
    """
    if key.strip():
        _keys.update((key, key.strip()))
        of_this_process.cache_clear()


@cache
def of_this_process() -> Scrubber:
    """Return the scrubber that knows who runs this process and where, the keys in its environment, and the plan's."""
    host = socket.gethostname()
    users = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")}
    with contextlib.suppress(KeyError, OSError):  # an account without a name: nothing to take out
        users.add(getpass.getuser())
    variables = {value for name, value in os.environ.items() if _SECRET_VARIABLE.search(name)}
    home = str(Path("~").expanduser())
    return Scrubber(
        users=tuple(sorted(users)),
        hosts=tuple(sorted({host, host.partition(".")[0]})),
        homes=() if home in ("/", "~", "/root") else (home,),
        secrets=tuple(sorted(variables)),
        keys=tuple(sorted(_keys)),
    )


def scrub(text: str) -> str:
    """Return *text* without anything personal, with what this process knows."""
    return of_this_process().text(text)


def _cut(text: str, most: int) -> str:
    """Return the first *most* characters of *text*, without the word that the cut goes through: it may be a key."""
    if len(text) <= most:
        return text
    start = most - _LONGEST_WORD
    return text[:start] + re.sub(r"[^\s\"',;=]*\Z", "", text[start:most])


def _is_secret(name: str, value: Any) -> bool:
    return (
        value is not None
        and not isinstance(value, bool | int | float)
        and _SECRET_NAME.search(name) is not None
        and _TOKEN_COUNTS.search(name) is None
    )


def _literally(names: Iterable[str], instead: str) -> Iterable[tuple[re.Pattern[str], str]]:
    return [(re.compile(re.escape(name)), instead) for name in sorted(set(names), key=len, reverse=True)]


def _as_words(names: Iterable[str], instead: str, tail: str) -> Iterable[tuple[re.Pattern[str], str]]:
    """Names as whole words, whatever their case; common words are left, they name nobody."""
    wanted = {name for name in names if len(name) >= _SHORTEST_NAME and name.lower() not in _COMMON_NAMES}
    return [
        (re.compile(rf"(?i)(?<![^\W_]){re.escape(name)}{tail}(?![^\W_])"), instead)
        for name in sorted(wanted, key=len, reverse=True)
    ]


def _public_host(match: "re.Match[str]") -> str:
    scheme, host = match.groups()
    name = host.lower()
    known = name in _LOOPBACK or any(name == public or name.endswith(f".{public}") for public in _PUBLIC_HOSTS)
    return scheme + (host if known else HOST)
