"""The product told as a story on a sample lake: `python -m backcast.demo`, or `make demo`."""
