"""Events and sessions: recording what agents do, and reading it back."""
