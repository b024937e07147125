"""What the commands tell people: answers computed from the store and the flow, ready to be shown as text or JSON."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from backcast.model.approval import Approvals
from backcast.model.canary import CanaryVerdict
from backcast.model.document import Document
from backcast.model.finding import Finding, Severity
from backcast.model.manifest import Manifest
from backcast.model.replay import Replayed
from backcast.model.request import Request
from backcast.model.run import Chunk, InputCount, Lease, Publication, Run
from backcast.model.throttled import Throttled
from backcast.model.verdict import Verdict
from backcast.model.watch import Watch


class Plan(Document):
    """A manifest, and the run that carries it once it was recorded. `refused` when a finding blocks."""

    manifest: Manifest
    sha256: str
    run_id: str
    recorded: bool
    refused: bool

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.manifest.findings


class Progress(Document):
    """How far a run's chunks are, after one more job or a new step."""

    step: str
    """`stage`, `validate`, `publish`, `undo`."""
    message: str
    done: int = 0
    total: int = 0
    rows: int = 0
    seconds: float = 0.0


OnProgress = Callable[[Progress], None]


class ChunkCounts(Document):
    pending: int = 0
    held: int = 0
    running: int = 0
    staged: int = 0
    failed: int = 0


class Restaged(Document):
    """What live rows in scope made of a run with live policy `restage`."""

    times: int
    chunks: int
    """Computed again the last time; the others were carried over."""
    base: str
    """The version on which the stage stands now."""
    live_rows: int
    """Rows that arrived in scope since the first base. Validation looks for each of them in the result."""


class Status(Document):
    """Everything an on-call person needs to see about one run."""

    run: Run
    manifest: Manifest
    counts: ChunkCounts
    strip: str = ""
    """One letter per chunk, in order: `.` pending, `:` held back, `>` running, `#` staged, `x` failed."""
    output_rows: int
    inputs: tuple[InputCount, ...] = ()
    """What staged chunks have read of each input by window. What several of them read counts for each."""
    rows_per_second: float | None
    seconds_left: float | None
    failed_chunks: tuple[Chunk, ...]
    holder: Lease | None
    """The process that works on it now."""
    workers: tuple[Lease, ...] = ()
    """Those that take part beside it."""
    restaged: Restaged | None = None
    canary: CanaryVerdict | None = None
    """What was found about the chunks that went first, while the others are held back."""
    watch: Watch | None = None
    """What was seen since the newest publish, where the pipeline declares a time or somebody looked."""
    replayed: Replayed | None = None
    """How its replay of a stream went, once that has ended."""
    quarantined: int = 0
    """Records that it set aside."""
    throttled: Throttled | None = None
    """What holds it back, as long as it has chunks to compute."""
    approvals: Approvals | None = None
    """Who has agreed, where somebody must."""
    verdict: Verdict | None
    publication: Publication | None
    """The newest publish."""
    undo_until: datetime | None
    next_command: str
    """What to type next; empty when nothing is left to do."""
    because: str
    """One sentence about where the run stands."""


class GcItem(Document):
    """One run whose refs can go, why, and what was done."""

    run_id: str
    table: str
    reason: str
    refs: tuple[str, ...]
    files_deleted: int | None = None
    """None: only listed, nothing done."""


class GcReport(Document):
    items: tuple[GcItem, ...]
    kept: tuple[str, ...]
    """Runs whose refs are still needed, one sentence each."""
    dry_run: bool
    swept: int = 0
    """Files deleted that earlier releases had to leave to the table's retention."""


class RequestCheck(Document):
    """What was found about one request file."""

    file: str
    request: Request
    days: float | None
    """Of its windows; None for offsets of a topic."""
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> bool:
        return any(each.severity is Severity.BLOCK for each in self.findings)


class Probe(Document):
    """One line of `doctor`."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
