"""One module for each family of commands; each is imported when it is called."""
