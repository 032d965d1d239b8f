"""Makes the tables of software targets (`targets/profiles/tables/`) out of what each says of single operators."""
