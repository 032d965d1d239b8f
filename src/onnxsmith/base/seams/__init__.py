"""Holds every use of private names of other libraries, and every replacement of their parts while a block runs."""
