"""What every layer may use: errors, identifiers, time, JSON. Imports no other package of ours."""
