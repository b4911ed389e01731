"""Speed held against the alternatives, each a table with ratios and noise. No test is here."""
