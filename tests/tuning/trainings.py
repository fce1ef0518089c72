"""Trainings as users write them: plain scripts with transformers' Trainer on the embedded encoder, a few steps each."""

from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from closerlook.encoders.source import resolve
from closerlook.tasks import load_task
from closerlook.tasks.task import Task

BASE = str(resolve("bert-tiny").folder)
TEXTS = 48


class Texts(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """The first texts of a task's train split, tokenized for a Trainer."""

    def __init__(self, task: Task) -> None:
        self.task, self.split = task, task.split("train")
        self.texts = sorted(set(self.split.sentence.tolist()))[:TEXTS]
        self.tokenizer = AutoTokenizer.from_pretrained(BASE)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, at: int) -> dict[str, Any]:
        rows = (self.split.sentence == self.texts[at]).nonzero()[0]
        text = self.split.texts[self.texts[at]]
        if self.task.unit == "sentence":
            plain = text if isinstance(text, str) else " ".join(text)
            return dict(self.tokenizer(plain), labels=int(self.split.y[rows[0]]))
        encoded = self.tokenizer(list(text), is_split_into_words=True)
        labels = {int(self.split.positions[row][0]): int(self.split.y[row]) for row in rows}
        words = encoded.word_ids()
        first = [word is not None and word != before for word, before in zip(words, [None, *words], strict=False)]
        tags = [labels.get(word, -100) if own else -100 for word, own in zip(words, first, strict=True)]
        return dict(encoded, labels=tags)


def train(out: Path, task_name: str = "toy-question", *, lora: int | None = None, **arguments: Any) -> Path:
    """Train for six steps with a checkpoint every two, and return the output folder."""
    task = load_task(task_name)
    is_sentence = task.unit == "sentence"
    factory = AutoModelForSequenceClassification if is_sentence else AutoModelForTokenClassification
    torch.manual_seed(0)
    model = factory.from_pretrained(
        BASE,
        dtype=torch.float32,
        num_labels=len(task.labels),
        id2label=dict(enumerate(task.labels)),
        label2id={label: at for at, label in enumerate(task.labels)},
    )
    if lora is not None:
        import peft

        kind = peft.TaskType.SEQ_CLS if is_sentence else peft.TaskType.TOKEN_CLS
        model = peft.get_peft_model(model, peft.LoraConfig(task_type=kind, r=lora, target_modules=["query", "value"]))
    data = Texts(task)
    resume = arguments.pop("resume", None)
    settings = {"max_steps": 6, "save_steps": 2, "learning_rate": 2e-3, "seed": 5} | arguments
    trainer = Trainer(
        model,
        TrainingArguments(
            str(out),
            per_device_train_batch_size=8,
            logging_steps=2,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            **settings,
        ),
        train_dataset=data,
        processing_class=data.tokenizer,
        data_collator=(DataCollatorWithPadding if is_sentence else DataCollatorForTokenClassification)(data.tokenizer),
    )
    trainer.train(resume_from_checkpoint=resume)
    return out
