"""Makes the tables of software targets (`profiles/tables/`) out of what each says of single operators."""
