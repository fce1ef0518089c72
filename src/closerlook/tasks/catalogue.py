"""The catalogue of predefined tasks: the corpus of each, how it is read, and how many examples and labels it has."""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from closerlook.errors import InputError
from closerlook.tasks.readers import Options, read_files
from closerlook.tasks.task import Task, Unit

DATA = "CLOSERLOOK_DATA"
"""The environment variable that names the data folder."""


@dataclass(frozen=True)
class Remote:
    """A file at a corpus's official source, and how a download of it is verified.

    targets: where the file is written, relative to the data folder; two paths if the file is cut in two.
    digests: accepted digests of the file, as 'algorithm:hex'.
    content: for a file without a digest: label option -> hash of the split read with that option.
    no_digest: why the file has no digest.
    cut: how many sentences (each ends with a blank line) go to the first of two targets.
    """

    url: str
    targets: tuple[str, ...]
    digests: tuple[str, ...] = ()
    content: Mapping[str, str] = field(default_factory=dict)
    no_digest: str = ""
    cut: int | None = None


@dataclass(frozen=True)
class Corpus:
    """A published corpus. files: for each split, the accepted paths, relative to the data folder."""

    name: str
    url: str
    licence: str
    citation: str
    files: Mapping[str, tuple[str, ...]]
    remotes: tuple[Remote, ...] = ()
    embedded: bool = False  # the files are part of this package


@dataclass(frozen=True)
class Entry:
    """A predefined task. labels, train, test: expected numbers of labels and examples; None if they are not checked.

    >>> entry = find_task("toy-pos")
    >>> entry.unit, entry.labels, entry.train
    ('token', 17, 9090)
    """

    name: str
    unit: Unit
    title: str
    corpus: Corpus
    options: Options
    labels: int | None = None
    train: int | None = None
    test: int | None = None


_PUD = Corpus(
    name="UD English-PUD r2.6",
    url="https://github.com/UniversalDependencies/UD_English-PUD",
    licence="CC BY-SA 3.0",
    citation="""@inproceedings{zeman-etal-2017-conll,
  title = {{CoNLL} 2017 Shared Task: Multilingual Parsing from Raw Text to {Universal Dependencies}},
  author = {Zeman, Daniel and others},
  booktitle = {Proceedings of the {CoNLL} 2017 Shared Task: Multilingual Parsing from Raw Text to
               {Universal Dependencies}},
  pages = {1--19},
  year = {2017},
  doi = {10.18653/v1/K17-3001}
}""",
    files={"train": ("ud-english-pud/train.conllu",), "test": ("ud-english-pud/test.conllu",)},
    remotes=(
        Remote(
            "https://raw.githubusercontent.com/UniversalDependencies/UD_English-PUD/r2.6/en_pud-ud-test.conllu",
            ("ud-english-pud/train.conllu", "ud-english-pud/test.conllu"),
            ("sha256:e312f9f0273b51634e1b32b7f8c3122341c168a22713a5eefe2d2fbe15ca6545",),
            cut=800,  # the paper's split: the first 800 sentences are train, the last 200 test
        ),
    ),
)

_PARTUT_URL = "https://raw.githubusercontent.com/UniversalDependencies/UD_English-ParTUT/master/en_partut-ud"

_PARTUT = Corpus(
    name="UD English-ParTUT",
    url="https://github.com/UniversalDependencies/UD_English-ParTUT",
    licence="CC BY-NC-SA 4.0",
    citation="""@incollection{sanguinetti-bosco-2015-partut,
  title = {{PartTUT}: The {Turin University} Parallel Treebank},
  author = {Sanguinetti, Manuela and Bosco, Cristina},
  booktitle = {Harmonization and Development of Resources and Tools for {Italian} Natural Language Processing
               within the {PARLI} Project},
  publisher = {Springer},
  pages = {51--69},
  year = {2015}
}""",
    files={split: (f"ud-english-partut/{split}.conllu",) for split in ("train", "dev", "test")},
    remotes=(
        Remote(
            f"{_PARTUT_URL}-train.conllu",
            ("ud-english-partut/train.conllu",),
            ("sha256:d7f3fa31fd8a6536e5c1ddcf37911621e77b6d37e20e73dbad1f8fc65e56ef84",),
        ),
        Remote(
            f"{_PARTUT_URL}-dev.conllu",
            ("ud-english-partut/dev.conllu",),
            ("sha256:f52fe2eeedcbb916516a7cabaeda89a618e3832ade19750e30b4f514865cdb86",),
        ),
        Remote(
            f"{_PARTUT_URL}-test.conllu",
            ("ud-english-partut/test.conllu",),
            ("sha256:fdc9c5a5fd95f9b426b98cbe43fecad011cd4c33f9bf211d4673d060ee9d0e96",),
        ),
    ),
)

# Train and test only, as in the paper: dev has a 47th role (InsteadOf) that train lacks.
_STREUSLE = Corpus(
    name="STREUSLE 4.2",
    url="https://github.com/nert-nlp/streusle",
    licence="CC BY-SA 4.0",
    citation="""@inproceedings{schneider-etal-2018-comprehensive,
  title = {Comprehensive Supersense Disambiguation of {English} Prepositions and Possessives},
  author = {Schneider, Nathan and Hwang, Jena D. and Srikumar, Vivek and Prange, Jakob and Blodgett, Austin and
            Moeller, Sarah R. and Stern, Aviram and Bitan, Adi and Abend, Omri},
  booktitle = {Proceedings of the 56th Annual Meeting of the Association for Computational Linguistics
               (Volume 1: Long Papers)},
  pages = {185--196},
  year = {2018},
  doi = {10.18653/v1/P18-1018}
}""",
    files={
        "train": ("streusle-4.2/train.conllulex", "streusle-4.2/train.jsonl"),
        "test": ("streusle-4.2/test.conllulex", "streusle-4.2/test.jsonl"),
    },
    remotes=(
        Remote(
            "https://raw.githubusercontent.com/nert-nlp/streusle/v4.2/train/streusle.ud_train.conllulex",
            ("streusle-4.2/train.conllulex",),
            content={
                "role": "c7d8b2d72d4f4953cce9989b928ecb89c1b399b4075b2a6aaa374ec195dc0e87",
                "function": "adc999701efb10ae2f5c5b2d25f4c69a0010595bb240ec66849f15868099308a",
            },
            no_digest="the release has none; the hashes come from a copy of the same sentences in JSON lines",
        ),
        Remote(
            "https://raw.githubusercontent.com/nert-nlp/streusle/v4.2/test/streusle.ud_test.conllulex",
            ("streusle-4.2/test.conllulex",),
            ("sha256:cea04218b6c195bc4fc37f85a547c9f864ae2a07ebd9eaf788b4a54268686e90",),
        ),
    ),
)

_TREC = Corpus(
    name="TREC question classification",
    url="https://cogcomp.seas.upenn.edu/Data/QA/QC/",
    licence="free for research",
    citation="""@inproceedings{li-roth-2002-learning,
  title = {Learning Question Classifiers},
  author = {Li, Xin and Roth, Dan},
  booktitle = {{COLING} 2002: The 19th International Conference on Computational Linguistics},
  year = {2002}
}""",
    files={"train": ("trec/train_5500.label",), "test": ("trec/TREC_10.label",)},
    remotes=(
        Remote(
            "https://cogcomp.seas.upenn.edu/Data/QA/QC/train_5500.label",
            ("trec/train_5500.label",),
            (
                "md5:073462e3fcefaae31e00edb1f18d2d02",  # the official file
                "sha256:f96f211c9d180d3fa25b1841febd9be6f0a6fc65e5b6a99344b5946163b35009",  # its ASCII version
            ),
        ),
        Remote(
            "https://cogcomp.seas.upenn.edu/Data/QA/QC/TREC_10.label",
            ("trec/TREC_10.label",),
            ("md5:323a3554401d86e650717e2d2f942589",),
        ),
    ),
)

_TOY = Corpus(
    name="built in; sentences generated by a grammar",
    url="https://aclanthology.org/2022.acl-long.75/",
    licence="MIT",
    citation="""@inproceedings{zhou-srikumar-2022-closer,
  title = {A Closer Look at How Fine-tuning Changes {BERT}},
  author = {Zhou, Yichu and Srikumar, Vivek},
  booktitle = {Proceedings of the 60th Annual Meeting of the Association for Computational Linguistics
               (Volume 1: Long Papers)},
  year = {2022},
  doi = {10.18653/v1/2022.acl-long.75}
}""",
    files={"train": ("train.conllu",), "test": ("test.conllu",)},
    embedded=True,
)

# The words of these corpora are joined by spaces, as in the paper, and not as the corpora write them.
_UPOS, _DEPREL = Options(label="upos", join="spaces"), Options(label="deprel", join="spaces")
# The paper's POS counts include PUD's 7 empty nodes as words.
_UPOS_EMPTY = Options(label="upos", empty_nodes=True, join="spaces")
_ROLE, _FUNCTION = (Options(label=f"misc:{key}", join="spaces") for key in ("Role", "Function"))
_QUESTION = Options(label="comment:question", join="spaces")

CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("pos", "token", "part of speech", _PUD, _UPOS_EMPTY, 17, 16860, 4323),
        Entry("dep", "pair", "dependency relation", _PUD, _DEPREL, 46, 16054, 4122),
        Entry("ps-role", "token", "preposition supersense: role", _STREUSLE, Options(label="role"), 46, 4282, 457),
        Entry(
            "ps-fxn", "token", "preposition supersense: function", _STREUSLE, Options(label="function"), 40, 4282, 457
        ),
        Entry("trec-50", "sentence", "type of question", _TREC, Options(label="fine"), 50, 5452, 500),
        Entry("partut-pos", "token", "part of speech, a second treebank", _PARTUT, _UPOS, 17, 43504, 3408),
        Entry("toy-pos", "token", "part of speech", _TOY, _UPOS, 17, 9090, 2342),
        Entry("toy-dep", "pair", "dependency relation", _TOY, _DEPREL, 38, 8290, 2142),
        Entry("toy-role", "token", "preposition: role", _TOY, _ROLE, 37, 1271, 330),
        Entry(
            "toy-fxn",
            "token",
            "preposition: function",
            _TOY,
            _FUNCTION,
            29,
            1271,
            330,
        ),
        Entry(
            "toy-question",
            "sentence",
            "type of question",
            _TOY,
            _QUESTION,
            20,
            381,
            86,
        ),
    )
}
"""The entries by name; the first five have the counts that the paper reports."""


def list_tasks() -> tuple[Entry, ...]:
    """All predefined tasks.

    >>> [entry.name for entry in list_tasks()][:5]
    ['pos', 'dep', 'ps-role', 'ps-fxn', 'trec-50']
    """
    return tuple(CATALOGUE.values())


def find_task(name: str) -> Entry:
    """The entry of that name.

    >>> find_task("toy-question").title
    'type of question'
    """
    if name in CATALOGUE:
        return CATALOGUE[name]
    if os.path.exists(name):
        path = name if os.path.isabs(name) else f"./{name}"
        raise InputError(f"task {name!r} is unknown, but a file or folder of that name exists: use read_task({path!r})")
    close = difflib.get_close_matches(name, CATALOGUE, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"expected one of {', '.join(CATALOGUE)}"
    raise InputError(f"task {name!r} is unknown; {hint}")


def load_catalogue_task(name: str, data: str | Path | None = None) -> Task:
    """The task of that name, read from the data folder (by default `CLOSERLOOK_DATA`), with its counts checked.

    Built-in tasks, whose corpus is part of this package, need no data folder. Use `read_task` for your own files.

    >>> load_catalogue_task("toy-question")
    Task('toy-question', sentence, 20 labels, train 381, test 86)
    """
    entry = find_task(name)
    files = {split: _file_of(entry, split, data) for split in entry.corpus.files}
    task = read_files(files, name=name, options=entry.options, level=logging.INFO)
    _check_counts(entry, task, files["train"].parent)
    return task


def is_present(entry: Entry, data: str | Path | None = None) -> bool:
    """Whether every split of the task has a file in the data folder.

    >>> is_present(find_task("toy-pos")), is_present(find_task("pos"), "an-empty-folder")
    (True, False)
    """
    folder = data_folder(entry, data)
    return folder is not None and all(
        any(os.path.isfile(folder / file) for file in files) for files in entry.corpus.files.values()
    )


def data_folder(entry: Entry, data: str | Path | None = None) -> Path | None:
    """The folder to which the entry's files are relative; None if no data folder is set."""
    if entry.corpus.embedded:
        return Path(__file__).parent / "embedded"
    folder = data or os.environ.get(DATA)
    return Path(folder) if folder else None


def _file_of(entry: Entry, split: str, data: str | Path | None) -> Path:
    folder = data_folder(entry, data)
    if folder is None:
        raise InputError(
            f"task {entry.name} needs {entry.corpus.name}; name the data folder with data= (--data on the command "
            f"line) or {DATA}; `closerlook data get {entry.name} --data FOLDER` downloads the corpus"
        )
    candidates = [folder / file for file in entry.corpus.files[split]]
    for candidate in candidates:
        if os.path.isfile(candidate):
            return candidate
    raise InputError(f"task {entry.name}: no {candidates[0]}; expected {entry.corpus.name} there ({entry.corpus.url})")


def _check_counts(entry: Entry, task: Task, folder: Path) -> None:
    counts = {"labels": len(task.labels), "train": len(task.split("train")), "test": len(task.split("test"))}
    expected = {"labels": entry.labels, "train": entry.train, "test": entry.test}
    differing = [name for name, count in expected.items() if count not in {None, counts[name]}]
    if differing:
        listed = ", ".join(f"{name} {counts[name]} (expected {expected[name]})" for name in differing)
        raise InputError(f"task {entry.name}: {listed}; {folder} contains a different release than {entry.corpus.name}")
