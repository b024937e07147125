"""Reads backcast.yaml and the user's code, and wires ports to adapters; the only place that knows all of them."""
