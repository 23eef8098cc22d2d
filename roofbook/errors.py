"""Every error a person can do something about, as one small tree.

RoofbookError
├── UsageError          the call is wrong: an option, an unknown id
├── PlanError           the plan file is wrong: file, line, key
├── ServerError         no such server answers, or it answers something else
│   └── ModelError      the server does not have that model
├── EngineError         the embedded llama.cpp server cannot run
├── WriteError          a file cannot be written
├── FactsError          a fact file is malformed: entry and key
├── ReaderError         a model description cannot be read
├── RecordError         a run file is broken or of an unknown version
├── EstimateError       the theory lacks the keys it needs
├── WordsError          the catalogue of a language is broken or lacks a sentence
└── PageError           a template, a chart or a page cannot be made

The message is an English sentence with %(name)s places, so that it is also its own key in the catalogue of another
language: ``words.say(error.message, **error.values)`` is the translation, ``str(error)`` the English.
"""


class RoofbookError(Exception):
    """The base: *message* is a sentence with %(name)s places that says what is wrong and the way out."""

    def __init__(self, message: str, /, **values: object) -> None:
        super().__init__(message, values)
        self.message = message
        self.values = values

    def __str__(self) -> str:
        return self.message % self.values


class UsageError(RoofbookError):
    """The call is wrong: an unknown option or id."""


class PlanError(RoofbookError):
    """The plan is wrong; the message names file, line and key."""


class ServerError(RoofbookError):
    """No such server answers at the address, or it is not what the plan says."""


class ModelError(ServerError):
    """The server does not have the model; the message names those it has."""


class EngineError(RoofbookError):
    """The embedded engine is not installed, or it died."""


class WriteError(RoofbookError):
    """A file or folder cannot be written."""


class FactsError(RoofbookError):
    """A fact file is malformed; the message names file, entry and key."""


class ReaderError(RoofbookError):
    """A model description (config.json, GGUF, a server's answer) cannot be read."""


class RecordError(RoofbookError):
    """A run file is broken, or of a version this program does not know."""


class EstimateError(RoofbookError):
    """The theory cannot estimate; the message names the keys that are missing."""


class WordsError(RoofbookError):
    """A catalogue is broken, or has no translation for a sentence."""


class PageError(RoofbookError):
    """A page, a template or a figure cannot be made; the message names template and line."""
