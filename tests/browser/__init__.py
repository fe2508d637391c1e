"""What people do in a browser: a real Chromium, the web application behind a real server, and a real worker.

Without a Chromium these tests are skipped; ``WAYPOST_REQUIRE_BROWSER=1`` makes that a failure.
"""
