def table(lines): return ''
