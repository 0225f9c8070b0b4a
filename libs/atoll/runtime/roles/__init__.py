"""What the image is asked to be: `python -m atoll.runtime.roles ROLE [ARGUMENTS]`.

A service replaces this process, so that signals reach it; the rest are small jobs around services.
"""
