"""The features, all that the server does for agents: a folder for each service of the API."""
