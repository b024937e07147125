"""One file per command: parse, call the control plane, render."""
