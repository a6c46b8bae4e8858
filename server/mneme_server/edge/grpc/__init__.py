"""The gRPC edge: the only importer of grpc and of the wire's messages.

A call passes the layers listed in `server.py`, outermost first, and then reaches its servicer,
which converts in, calls one use case, and converts out. Who is calling, it learns from the `Call`.
"""
