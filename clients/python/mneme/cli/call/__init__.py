"""`mneme call`: any RPC of the API, with nothing written for it by hand."""
