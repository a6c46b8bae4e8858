"""What the project's figures are measured with: `make bench`, and `benchmarks/locomo.py`."""
