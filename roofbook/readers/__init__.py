"""What a model is, from what lies at hand: a config.json, a GGUF header, a server's answer. Pure: text or bytes in.

Each reader returns a ``Reading``: what its source holds, with None for the rest, and the names of what is missing.
"""

from roofbook.readers.gguf_header import read_gguf, read_gguf_header
from roofbook.readers.hf_config import read_config
from roofbook.readers.llamacpp import read_llamacpp, with_gguf_at_its_path
from roofbook.readers.ollama import read_ollama
from roofbook.readers.reading import Reading, completed, disagreements, from_json, to_json

__all__ = [
    "Reading",
    "completed",
    "disagreements",
    "from_json",
    "read_config",
    "read_gguf",
    "read_gguf_header",
    "read_llamacpp",
    "read_ollama",
    "to_json",
    "with_gguf_at_its_path",
]
