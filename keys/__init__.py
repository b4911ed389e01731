"""Who vouches for a plugin: signatures, pinned keys, key files, verified states. Fetches and installs nothing."""
