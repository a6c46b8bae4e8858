"""What learns, with torch. Only worker processes import what is in here."""
