"""Where the client meets the network and the user's own files. Decides nothing."""
