"""What the server can do for agents: a folder for each service of the API."""
