"""The page of a study: a jinja2 template, its charts as SVG, and its gallery of queries."""
