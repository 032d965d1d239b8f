"""The room of overlays: what a part of a report says about each node. A class is called as the part that it shows."""
