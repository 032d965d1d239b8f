"""Places the items of a room in rows, so that all edges point down."""
