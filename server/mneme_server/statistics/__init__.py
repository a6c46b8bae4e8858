"""Tests, intervals and regressions: what every capability that draws conclusions shares."""
