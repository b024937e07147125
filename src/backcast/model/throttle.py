"""How a run holds back, so that what is live beside it keeps its share of the machines."""

from __future__ import annotations

from backcast.model.document import Document


class Throttle(Document):
    """Limits of each process that works on a run. They change when rows are computed, never which."""

    rows_per_second: int | None = None
    pause_seconds: int = 0
    """At least so long between two jobs."""
    live_lag: int | None = None
    """Records that a live stream may be behind; no job begins while one of them is further behind."""
    streams: tuple[str, ...] = ()
    """Those that are run here and write to the same table."""

    def rest(self, rows: int, seconds: float) -> float:
        """How long to wait after a job that took so long for so many rows."""
        due = 0.0 if self.rows_per_second is None else rows / self.rows_per_second - seconds
        return max(float(self.pause_seconds), due)

    def told(self) -> str:
        """For people: `at most 50,000 rows a second, 5 s between jobs, ...`."""
        parts = []
        if self.rows_per_second is not None:
            parts.append(f"at most {self.rows_per_second:,} rows a second")
        if self.pause_seconds:
            parts.append(f"{self.pause_seconds:,} s between jobs")
        if self.live_lag is not None:
            late = f"waits while {' or '.join(self.streams)} is more than {self.live_lag:,} records behind"
            parts.append(late if self.streams else "live_lag waits for nobody: no stream here writes to the table")
        return ", ".join(parts)
