"""The export of all-MiniLM-L6-v2 to ONNX: `make model`. The server only reads what it wrote."""
