"""What every bundle says about itself, for whoever opens it without us."""

from __future__ import annotations

INSTRUCTIONS = """\
Evidence of one run of Backcast
===============================

What was asked, who agreed, what ran, what was checked, what was published and what was taken back.

  run.json            the run as its store listed it when this was written
  manifest.json       the frozen plan; its SHA-256 is the name that approvals are bound to
  approvals.json      events of people who agreed, or did not, and how they were known
  chunks.json         the ledger: every chunk, its attempts, its rows
  stage.json          every commit on the hidden stage, with the digest of its rows
  verdicts.json       every verdict: checks, rules, numbers; bound to one staged version and one change of files
  publications.json   every publish and undo: versions of the table, files in, files out
  coverage.json       what became of every offset of a topic, if one was read
  change.json         what changed as the newest verdict counted it: rows of both sides, and no column and no row
  diff.json           summaries of diffs that somebody asked for: columns and rows, too
  notes.json          what people added later
  code.json           code, packages and settings with their digests
  timings.json        how long everything took
  openlineage.json    the run as OpenLineage events
  events.jsonl        the run's history, one event a line, each with the hash of the one before
  statement.json      an in-toto statement: SHA-256 of every file above, the table, the published versions
  statement.dsse.json the same statement in a DSSE envelope, with an Ed25519 signature if it was signed

With Backcast
-------------

  backcast verify FILE --key PUBLIC_KEY            on any machine; needs no project, no store, no Spark
  backcast verify FILE --key PUBLIC_KEY --table    in the project: the table's own commits are asked, too

By hand
-------

1. Files. The SHA-256 of each file is in statement.json under its name:

     sha256sum manifest.json

2. Signature. statement.dsse.json holds `payload` (statement.json in base64) and `signatures[0].sig`. What is signed is
   `DSSEv1 <length of type> <type> <length of payload> <payload>`, lengths in bytes, one blank between:

     python3 - <<'END'
     import base64, json
     e = json.load(open("statement.dsse.json"))
     t, p = e["payloadType"].encode(), base64.b64decode(e["payload"])
     assert p == open("statement.json", "rb").read()
     open("signed", "wb").write(b"DSSEv1 %d %b %d %b" % (len(t), t, len(p), p))
     open("signature", "wb").write(base64.b64decode(e["signatures"][0]["sig"]))
     END
     openssl pkeyutl -verify -pubin -inkey PUBLIC_KEY -rawin -in signed -sigfile signature

3. History. Take `sha256` out of a line of events.jsonl, write the rest as canonical JSON (RFC 8785; here that is the
   same line without that key), and its SHA-256 is the value that was taken out. `previous` is that of the line before,
   and empty in the first:

     python3 - <<'END'
     import hashlib, json
     previous = ""
     for number, line in enumerate(open("events.jsonl", encoding="utf-8"), 1):
         event = json.loads(line)
         bare = line.rstrip("\\n").replace(',"sha256":"%s"' % event["sha256"], "")
         assert (event["number"], event["previous"]) == (number, previous)
         assert hashlib.sha256(bare.encode()).hexdigest() == event["sha256"]
         previous = event["sha256"]
     print(previous)
     END

4. Plan. The SHA-256 of manifest.json is `manifest_sha256` of run.json and `manifest` of every approval.

5. Table. The commits of the versions in publications.json carry `backcast.events-number` and `backcast.events-head`:
   the number and hash of the newest event when they were made. On Iceberg they are in the snapshot's summary, on Delta
   in the commit's userMetadata. Who changes the history afterwards would have to change the table's history, too.
"""
