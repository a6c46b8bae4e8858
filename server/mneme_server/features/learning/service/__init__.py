"""LearningService, served in parts by what its calls concern."""
