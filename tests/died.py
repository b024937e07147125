"""What a simulated crash leaves behind that a real one does not."""

from __future__ import annotations

from backcast.control import ControlPlane


def died(control: ControlPlane, lease: str) -> None:
    """Whoever held the lease is gone. This process lives on, as none does that was killed: others would wait for it."""
    held = control.world.reader().holder(lease)
    assert held is not None, lease
    control.world.store().leases.release(held)
