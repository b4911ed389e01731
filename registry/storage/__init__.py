"""Where the registry keeps what it knows: database rows, blobs and upload parts. Holds no rules."""
