"""A disposable cache of the ledger, for nearness."""
