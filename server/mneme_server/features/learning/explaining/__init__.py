"""Why a policy chooses an action: what speaks for it, and what would have to differ."""
