"""The registry's rules, as plain functions over values and records. Knows neither HTTP nor SQL."""
