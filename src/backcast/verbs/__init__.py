"""Verbs beside the flow, one class for each theme; `control.py` joins them to the control plane."""
