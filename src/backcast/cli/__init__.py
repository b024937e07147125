"""The command line: parse, call the control plane, render text or JSON."""
