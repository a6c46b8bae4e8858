"""Common ground: errors, identifiers, time, JSON. Imports no other package of ours."""
