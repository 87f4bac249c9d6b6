# SPDX-License-Identifier: Apache-2.0
"""What bench/experiment.py says about what it has measured."""

from __future__ import annotations

import math

COLUMNS = (
    "way",
    "made once before",
    "brought",
    "first epoch",
    "**until it ends**",
    "with what was made",
    "each further one",
    "metadata",
    "reads",
    "MB read",
)
# What to type for it.
NEXT = {
    "folder, read in place": 'stoker.Loader("FOLDER")',
    "folder, cp -r": "cp -r FOLDER LOCAL",
    "folder, rsync": "rsync -r -W --inplace --no-compress FOLDER LOCAL",
    "tar, copied and extracted": "tar cf FOLDER.tar FOLDER, once; cp FOLDER.tar LOCAL and tar xf in the job",
    "tar shards, read in place": 'stoker pack FOLDER SHARDS, once; stoker.Loader("SHARDS")',
    "TFRecord shards, read in place": 'stoker pack FOLDER SHARDS --to tfrecord, once; stoker.Loader("SHARDS")',
    "folder, stoker stage": "stoker stage FOLDER",
    "tar shards, stoker stage": "stoker pack FOLDER SHARDS, once; stoker stage SHARDS in the job",
    "tar shards, read while staged": 'stoker pack FOLDER SHARDS, once; stoker.Loader("SHARDS", stage=True)',
}
EPOCHS = 10
TIMES = ("prepared_s", "bring_s", "first_epoch_s", "until_first_epoch_s", "with_preparation_s", "next_epoch_s")


def pays_after(staged: dict, other: dict) -> int | None:
    """Epochs after which the first way has taken less time; None where it never does."""
    ahead = other["until_first_epoch_s"] - staged["until_first_epoch_s"]
    if ahead >= 0:
        return 1
    saves = other["next_epoch_s"] - staged["next_epoch_s"]
    return 1 + math.ceil(-ahead / saves) if saves > 0 else None


def findings(ways: dict[str, dict]) -> list[str]:
    """Sentences that say what to do."""
    first = min(ways, key=lambda name: ways[name]["until_first_epoch_s"])
    times = ways["folder, read in place"]["until_first_epoch_s"] / ways[first]["until_first_epoch_s"]
    said = [f"first epoch over soonest: {first}, {times:.1f} times as soon as the folder read in place"]
    for staged, other in (
        ("folder, stoker stage", "folder, read in place"),
        ("tar shards, stoker stage", "tar shards, read in place"),
        ("tar shards, read while staged", "tar shards, read in place"),
    ):
        epochs = pays_after(ways[staged], ways[other])
        when = "does not pay" if epochs is None else f"pays after {epochs} {'epoch' if epochs == 1 else 'epochs'}"
        said.append(f"{staged}: {when}, beside {other}")
    totals = {name: way["with_preparation_s"] + (EPOCHS - 1) * way["next_epoch_s"] for name, way in ways.items()}
    best = min(totals, key=lambda name: totals[name])
    said.append(f"{EPOCHS} epochs, with what is made before: least with {best}, {totals[best]:.1f} s")
    said.append(f"next: {NEXT[best]}")
    return said


def storage_words(shared: dict) -> str:
    if "path" in shared:
        return shared["path"]
    costs = f"{shared['metadata_ms']:g} ms a metadata operation, {shared['request_ms']:g} ms a request"
    return f"slow storage of our own: {costs}, {shared['rate']}B/s"


def row(way: dict) -> str:
    totals = [f"{way[what]:.2f} s" for what in TIMES]
    spread = [values["until_first_epoch_s"] for values in way["rounds"]]
    if len(spread) > 1:
        totals[TIMES.index("until_first_epoch_s")] += f" ({min(spread):.2f}–{max(spread):.2f})"
    counts = ["–"] * 3
    if "metadata" in way:
        counts = [f"{way['metadata']:,.0f}", f"{way['reads']:,.0f}", f"{way['read_bytes'] / 1e6:,.1f}"]
    return "| " + " | ".join([way["name"], *totals, *counts]) + " |"


def print_table(document: dict) -> None:
    decoded = ", decoded" if document["decode"] else ""
    size = f"{document['samples']:,} samples, {document['bytes'] / 1e6:.1f} MB{decoded}"
    rounds = len(document["ways"][0]["rounds"])
    print(f"{size}; {storage_words(document['shared'])}")
    print(f"{document['machine']}; {document['date']}; local: {document['local']}; median of {rounds}\n")
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for way in document["ways"]:
        print(row(way))
    for name, why in document["left_out"].items():
        print(f"| {name} | {why} |" + " |" * (len(COLUMNS) - 2))
    print()
    for line in document["findings"]:
        print(line)
