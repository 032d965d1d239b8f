"""Shows one model or two, coloured by the figures of reports, as an HTML page or a picture."""
