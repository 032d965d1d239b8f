"""Serves commands as tools to agents over the Model Context Protocol (MCP).

`tools` describes the commands as tools, `root` confines paths to a folder, `command_line` makes words of a call's
arguments, `calls` runs them in a process, `answers` makes an answer of the report, `server` speaks the protocol.
"""
