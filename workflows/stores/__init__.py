"""What lies beside the tables: private files, failures of a database, the state of the schema, its bootstrap."""
