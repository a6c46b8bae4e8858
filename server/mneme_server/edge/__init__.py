"""The edge, where calls come in: gRPC, HTTP, and the sockets of one folder."""
