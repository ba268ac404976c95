"""Short code in a line of text, such as ``--sweeps``, is not broken at its hyphens: a hook of mkdocs.

The class is known to docs/stylesheets/site.css.
"""

from __future__ import annotations

import re

LONGEST = 24
"""Characters of code that is not broken; what is longer may not fit into a column of a table."""

_SHORT = re.compile(rf"<code>([^<]{{1,{LONGEST}}})</code>(?!</pre>)")


def on_page_content(content: str, **_: object) -> str:
    """The page with a class for short code."""
    return _SHORT.sub(r'<code class="short">\1</code>', content)
