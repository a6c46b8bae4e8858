"""Learning a policy from rewards: which action works in which situation."""
