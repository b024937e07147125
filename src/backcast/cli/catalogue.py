"""The commands by name. Plain data without imports, so that the overview prints before anything is loaded."""

from __future__ import annotations

GROUPS: dict[str, dict[str, str]] = {
    "Start": {
        "init": "Write a small working project into a folder.",
        "doctor": "Check Java, packages, project, store, Spark and catalogs.",
    },
    "Before a plan": {
        "estimate": "Say how many rows, how long and for how much money.",
        "request validate": "Check request files: dates, duplicates, overlaps, reasons.",
    },
    "The flow": {
        "plan": "Show what a run would change, and record it; no table is touched.",
        "approve": "Agree to a planned run, or accept what validation noticed.",
        "reject": "Say no to a run that has not started, or to one under review.",
        "run": "Compute the chunks of a run on its hidden stage and validate them.",
        "diff": "Compare the stage of a run with the table: chunks, columns, rows.",
        "validate": "Check the stage of a run again and print the verdict.",
        "publish": "Make a validated stage visible in one commit.",
        "watch": "Look at what readers see after a publish, for a declared time.",
        "undo": "Take a publish back in one commit; rows that arrived since stay.",
        "backfill": "Plan, run and publish in one go.",
    },
    "Runs": {
        "status": "Say where a run stands and what to type next.",
        "list": "List runs, newest first.",
        "worker": "Compute chunks of a run beside the process that drives it.",
        "wait": "Wait until a run is done or needs a person.",
        "logs": "Print the recorded events of a run.",
        "retry": "Put failed chunks back and run again.",
        "throttle": "Show what holds a run back, or change it while it is under way.",
        "cancel": "Give a run up and drop its stage; the table stays as it is.",
        "gc": "Drop stages and tags that no run needs any more.",
    },
    "Datasets": {
        "check": "Find gaps and doubles in a dataset.",
        "gaps": "Find what a dataset lacks, and plan exactly that.",
        "compare": "Compare two versions of a dataset, or two parts.",
    },
    "Evidence": {
        "evidence": "Write everything on record about a run into one signed file.",
        "verify": "Check such a file, on any machine.",
        "explain": "Say why a part of a dataset is as it is.",
        "report": "Write a readable page about a run.",
        "note": "Add a sentence to the history of a run.",
        "keys new": "Make a pair of keys that evidence is signed with.",
    },
    "Streams": {
        "stream start": "Run a declared stream until it is stopped.",
        "stream stop": "Stop a stream behind the batch that is under way.",
        "stream status": "Say where a stream stands: position, lag, batches.",
        "stream list": "List the declared streams.",
        "stream lag": "Say how far a stream is behind its topic.",
        "late": "Find what a stream left out of its table; plan just that.",
        "stream recover": "Bring back a stream whose checkpoint is lost.",
        "stream backfill": "Restate a window of a stream's table, pausing it if need be.",
        "stream replay": "Compute a stream's table anew; the query that did goes on.",
    },
    "Kafka": {
        "kafka offsets": "Say which offsets of a topic a moment falls on.",
        "kafka window": "Find the offsets that hold a window of event time.",
        "kafka handover": "Say where a stream goes on after a bootstrap.",
        "archive": "Copy what the log of a topic has more than its archive.",
        "quarantine list": "List runs that set records aside.",
        "quarantine show": "Show the records that a run set aside, and why.",
        "quarantine retry": "Take records that a run set aside up again, in a new run.",
    },
    "Checkpoints": {
        "checkpoint inspect": "Show batches, positions, watermark and state.",
        "checkpoint history": "Show a checkpoint batch by batch.",
        "checkpoint verify": "Find damaged files, and what Spark makes of them.",
        "checkpoint diff": "Compare two checkpoints, or one with a backup.",
        "checkpoint backup": "Copy a checkpoint with hashes, also while it is in use.",
        "checkpoint restore": "Put a backup in its place; what was there is kept.",
        "checkpoint fork": "Make a new checkpoint, a new query, out of another.",
        "checkpoint rewind": "Let a stream go on after an earlier batch.",
    },
}

SUMMARIES: dict[str, str] = {name: text for group in GROUPS.values() for name, text in group.items()}
"""Names have one or two words."""
FAMILIES: dict[str, str] = {
    "request": "Requests as files in git.",
    "keys": "Keys that evidence is signed with.",
    "kafka": "Look at a declared topic; nothing is changed.",
    "stream": "Live queries: run them, stop them, see where they stand.",
    "checkpoint": "Checkpoints of Structured Streaming queries, ours or anybody's.",
    "quarantine": "Records that could not be decoded, and those that a transform rejected.",
}
"""First words of commands that have two."""
