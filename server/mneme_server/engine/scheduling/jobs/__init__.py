"""Work beside the calls: short work on threads, heavy work in processes of its own."""
