"""A second look at the best candidates by a model that reads the query and each text together."""
