"""Work beside the calls: that of tenants by turns, jobs, worker processes, what is repeated."""
