"""Schema revisions, run by `spm-registry init`. The only place beside `storage` that speaks SQL."""
